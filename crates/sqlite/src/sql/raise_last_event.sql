UPDATE executions SET last_event_id = max(last_event_id, ?3) WHERE instance_id = ?1 AND execution_id = ?2
