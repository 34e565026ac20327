-- Instances in order of creation, for retention. The join reads one row per instance of the page.
SELECT i.rowid, i.instance_id, i.orchestration_name, ifnull(e.status, 'Unknown'), i.parent_instance_id IS NULL, i.created_at, e.completed_at
FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.rowid > ?1 ORDER BY i.rowid LIMIT (?2 + 0)
