-- A table with a name of the store in a schema without a migration table: the schema is not a store.
SELECT c.relname::text FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relname = ANY ($2)
ORDER BY c.relname LIMIT 1
