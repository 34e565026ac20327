-- A name that identifies the owner of the file: a known table of another program, or else the first object that was created.
SELECT name FROM sqlite_schema
WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'
ORDER BY name NOT IN ('_sqlx_migrations', 'instances'), rowid
LIMIT 1
