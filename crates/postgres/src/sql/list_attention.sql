-- list_instances for instances whose current execution runs or failed, by the partial index on executions.
SELECT i.created_as, i.instance_id, i.orchestration_name, coalesce(i.orchestration_version, 'unknown') AS orchestration_version,
       i.current_execution_id, e.status, e.output, i.created_at,
       greatest(i.updated_at, (SELECT max(x.updated_at) FROM {schema}.executions AS x WHERE x.instance_id = i.instance_id)) AS updated_at,
       i.parent_instance_id
FROM {schema}.executions AS e
CROSS JOIN LATERAL (SELECT * FROM {schema}.instances AS i WHERE i.instance_id = e.instance_id LIMIT 1) AS i
WHERE e.status IN ('Running', 'Failed') AND e.status = $2
    AND i.current_execution_id = e.execution_id
    AND i.created_as < $1 AND i.created_as > $9
    AND ($3::text IS NULL OR i.orchestration_name = $3)
    AND ($4::text IS NULL OR starts_with(i.instance_id, $4))
    AND ($5::text IS NULL OR i.parent_instance_id = $5)
    AND ($6::bigint IS NULL OR i.created_at >= $6)
    AND ($7::bigint IS NULL OR i.created_at < $7)
ORDER BY i.created_as DESC LIMIT $8
