INSERT INTO kv_store (instance_id, key, value, last_updated_at_ms)
SELECT instance_id, key, value, last_updated_at_ms FROM kv_delta WHERE instance_id = ?1 AND value IS NOT NULL
ON CONFLICT (instance_id, key) DO UPDATE
SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms
