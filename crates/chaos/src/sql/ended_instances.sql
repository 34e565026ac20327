SELECT i.instance_id
FROM instances AS i JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE e.status IN ('Completed', 'Failed')
