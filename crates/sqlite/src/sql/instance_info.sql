SELECT i.rowid, i.instance_id, i.orchestration_name, ifnull(i.orchestration_version, 'unknown'),
       i.current_execution_id, ifnull(e.status, 'Unknown'), e.output, i.created_at,
       max(i.updated_at, ifnull((SELECT max(x.updated_at) FROM executions AS x WHERE x.instance_id = i.instance_id), 0)),
       i.parent_instance_id
FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
