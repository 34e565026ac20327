-- Instances whose current execution runs or failed, newest first, by the partial index on executions.
SELECT i.instance_id FROM {schema}.executions AS e
CROSS JOIN LATERAL (
    SELECT i.instance_id, i.created_as, i.current_execution_id FROM {schema}.instances AS i
    WHERE i.instance_id = e.instance_id LIMIT 1
) AS i
WHERE e.status IN ('Running', 'Failed') AND e.status = $1 AND i.current_execution_id = e.execution_id
ORDER BY i.created_as DESC
