DELETE FROM executions WHERE instance_id = ?1
