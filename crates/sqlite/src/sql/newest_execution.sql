SELECT max(execution_id) FROM executions WHERE instance_id = ?1
