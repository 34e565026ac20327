SELECT i.created_as, i.instance_id, i.orchestration_name, coalesce(i.orchestration_version, 'unknown') AS orchestration_version,
       i.current_execution_id, coalesce(e.status, 'Unknown') AS status, e.output, i.created_at,
       greatest(i.updated_at, (SELECT max(x.updated_at) FROM {schema}.executions AS x WHERE x.instance_id = i.instance_id)) AS updated_at,
       i.parent_instance_id
FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = $1
