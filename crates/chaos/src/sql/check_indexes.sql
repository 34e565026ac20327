-- Fails if an index is damaged or lacks a row of its table.
SELECT public.bt_index_check(c.oid, true)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS a ON a.oid = c.relam
WHERE a.amname = 'btree' AND c.relnamespace = current_schema()::regnamespace
