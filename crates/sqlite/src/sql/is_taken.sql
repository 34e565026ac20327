SELECT EXISTS (SELECT 1 FROM instances WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM executions WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM history WHERE instance_id = ?1 AND execution_id = 1)
