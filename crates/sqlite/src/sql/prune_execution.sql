DELETE FROM executions WHERE instance_id = ?1 AND execution_id = ?2
