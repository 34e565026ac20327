SELECT execution_id FROM executions WHERE instance_id = ?1 ORDER BY execution_id
