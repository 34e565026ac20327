SELECT EXISTS (
    SELECT 1 FROM instances AS i
    JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
    WHERE i.instance_id = ?1 AND e.status IN ('Completed', 'Failed'))
