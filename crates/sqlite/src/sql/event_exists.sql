SELECT 1 FROM history WHERE instance_id = ?1 AND execution_id = ?2 AND event_id = ?3
