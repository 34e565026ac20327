-- Instances in order of creation, for retention. The join reads one row per instance of the page.
SELECT i.created_as, i.instance_id, i.orchestration_name, coalesce(e.status, 'Unknown') AS status,
       i.parent_instance_id IS NULL AS is_root, i.created_at, e.completed_at
FROM (SELECT * FROM {schema}.instances WHERE created_as > $1 ORDER BY created_as LIMIT $2) AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
ORDER BY i.created_as
