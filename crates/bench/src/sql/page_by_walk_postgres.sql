-- A page as read without the index executions_attention and without a limit: instances from the newest on, until the page is full.
SELECT i.created_as, i.instance_id, i.orchestration_name, coalesce(i.orchestration_version, 'unknown'),
       i.current_execution_id, coalesce(e.status, 'Unknown'), e.output, i.created_at,
       greatest(i.updated_at, (SELECT max(x.updated_at) FROM outlast.executions AS x WHERE x.instance_id = i.instance_id)),
       i.parent_instance_id
FROM outlast.instances AS i
LEFT JOIN outlast.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.created_as < $1
    AND ($2::text IS NULL OR e.status = $2)
    AND ($3::text IS NULL OR i.orchestration_name = $3)
    AND ($4::text IS NULL OR starts_with(i.instance_id, $4))
    AND ($5::text IS NULL OR i.parent_instance_id = $5)
    AND ($6::bigint IS NULL OR i.created_at >= $6)
    AND ($7::bigint IS NULL OR i.created_at < $7)
ORDER BY i.created_as DESC LIMIT $8
