UPDATE kv_delta SET value = NULL, last_updated_at_ms = ?2 WHERE instance_id = ?1
