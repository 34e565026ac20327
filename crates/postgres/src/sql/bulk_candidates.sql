-- Oldest first. $3: only finished roots. $5: only these, if given.
SELECT i.created_as, i.instance_id FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.created_as > $1
    AND ($2::bigint IS NULL OR e.completed_at < $2)
    AND (NOT $3::boolean OR (i.parent_instance_id IS NULL AND e.status IN ('Completed', 'Failed')))
    AND ($5::text[] IS NULL OR i.instance_id = ANY ($5))
ORDER BY i.created_as LIMIT $4
