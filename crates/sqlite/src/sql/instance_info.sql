SELECT i.rowid, i.instance_id, i.orchestration_name, ifnull(i.orchestration_version, 'unknown'),
       i.current_execution_id, ifnull(e.status, 'Unknown'), e.output, i.created_at, i.updated_at, i.parent_instance_id
FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
