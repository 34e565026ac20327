-- A part of a window of instances, newest first, by the order of creation; a NULL parameter does not filter. LIMIT 1: every plan
-- looks up the executions one by one.
SELECT i.created_as, i.instance_id, i.orchestration_name, coalesce(i.orchestration_version, 'unknown') AS orchestration_version,
       i.current_execution_id, coalesce(e.status, 'Unknown') AS status, e.output, i.created_at,
       greatest(i.updated_at, (SELECT max(x.updated_at) FROM {schema}.executions AS x WHERE x.instance_id = i.instance_id)) AS updated_at,
       i.parent_instance_id
FROM {schema}.instances AS i
LEFT JOIN LATERAL (
    SELECT e.status, e.output FROM {schema}.executions AS e
    WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id LIMIT 1
) AS e ON true
WHERE i.created_as < $1 AND i.created_as > $9
    AND ($2::text IS NULL OR e.status = $2)
    AND ($3::text IS NULL OR i.orchestration_name = $3)
    AND ($4::text IS NULL OR starts_with(i.instance_id, $4))
    AND ($5::text IS NULL OR i.parent_instance_id = $5)
    AND ($6::bigint IS NULL OR i.created_at >= $6)
    AND ($7::bigint IS NULL OR i.created_at < $7)
ORDER BY i.created_as DESC LIMIT $8
