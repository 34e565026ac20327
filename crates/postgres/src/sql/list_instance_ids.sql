-- One window of instances, newest first, by the order of creation; a NULL status does not filter. LIMIT 1: every plan looks up
-- the executions one by one.
SELECT i.instance_id FROM {schema}.instances AS i
LEFT JOIN LATERAL (
    SELECT e.status FROM {schema}.executions AS e
    WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id LIMIT 1
) AS e ON true
WHERE i.created_as < $1 AND i.created_as > $2 AND ($3::text IS NULL OR e.status = $3)
ORDER BY i.created_as DESC
