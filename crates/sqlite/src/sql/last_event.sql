SELECT max(event_id) FROM history WHERE instance_id = ?1 AND execution_id = ?2
