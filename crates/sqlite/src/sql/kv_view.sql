SELECT key, value FROM kv_delta WHERE instance_id = ?1 AND value IS NOT NULL
UNION ALL
SELECT key, value FROM kv_store
WHERE instance_id = ?1 AND key NOT IN (SELECT key FROM kv_delta WHERE instance_id = ?1)
