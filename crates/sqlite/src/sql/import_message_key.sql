INSERT OR IGNORE INTO message_keys (instance_id, key, at) VALUES (?1, ?2, ?3)
