SELECT 'kv' AS tier, * FROM kv_store UNION ALL SELECT 'kv-delta', * FROM kv_delta
