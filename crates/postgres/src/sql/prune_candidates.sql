-- The oldest executions that pruning may remove, at most $4; $2 newest are kept.
SELECT e.execution_id FROM {schema}.executions AS e
JOIN {schema}.instances AS i ON i.instance_id = e.instance_id
WHERE e.instance_id = $1
    AND e.execution_id <> i.current_execution_id
    AND e.status <> 'Running'
    AND ($3::bigint IS NULL OR e.completed_at < $3)
    AND e.execution_id NOT IN (
        SELECT n.execution_id FROM {schema}.executions AS n WHERE n.instance_id = $1 ORDER BY n.execution_id DESC LIMIT $2)
ORDER BY e.execution_id LIMIT $4
