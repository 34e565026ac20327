SELECT i.created_as, i.instance_id FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.created_as < $1 AND ($2::text IS NULL OR e.status = $2)
ORDER BY i.created_as DESC LIMIT $3
