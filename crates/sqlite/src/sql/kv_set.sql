INSERT INTO kv_delta (instance_id, key, value, last_updated_at_ms) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (instance_id, key) DO UPDATE
SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms
