-- A table with one of our names in a schema without our ledger: the schema is not ours.
SELECT c.relname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = ANY ($2)
ORDER BY c.relname LIMIT 1
