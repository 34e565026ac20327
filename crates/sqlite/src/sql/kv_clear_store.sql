INSERT INTO kv_delta (instance_id, key, value, last_updated_at_ms)
SELECT instance_id, key, NULL, ?2 FROM kv_store WHERE instance_id = ?1
ON CONFLICT (instance_id, key) DO NOTHING
