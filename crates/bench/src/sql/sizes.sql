-- Bytes of each table with its toast and maps, and of its indexes.
SELECT c.relname::text, pg_table_size(c.oid), pg_indexes_size(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r'
