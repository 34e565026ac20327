INSERT INTO kv_store (instance_id, key, value, last_updated_at_ms) VALUES (?1, ?2, ?3, ?4)
