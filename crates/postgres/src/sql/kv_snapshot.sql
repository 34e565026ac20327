SELECT key, value, last_updated_at_ms FROM {schema}.kv_store WHERE instance_id = $1
