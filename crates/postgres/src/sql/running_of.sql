SELECT i.instance_id FROM {schema}.instances AS i
JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = ANY ($1) AND e.status = 'Running' LIMIT 1
