-- Something that tells whose schema it is: a table of one of our names, which we did not make.
SELECT c.relname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = ANY ($2)
ORDER BY c.relname LIMIT 1
