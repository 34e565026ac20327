SELECT event_data FROM history
WHERE instance_id = ?1 AND execution_id = ?2 AND event_id > ?3 ORDER BY event_id LIMIT (?4 + 0)
