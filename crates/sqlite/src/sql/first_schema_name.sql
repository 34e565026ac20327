-- Something that tells whose file it is: a table that others are known for, or else whatever was created first.
SELECT name FROM sqlite_schema
WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'
ORDER BY name NOT IN ('_sqlx_migrations', 'instances'), rowid
LIMIT 1
