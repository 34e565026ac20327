-- bulk_candidates for one instance id.
SELECT i.rowid FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
  AND (?2 IS NULL OR e.completed_at < ?2)
  AND (NOT ?3 OR (i.parent_instance_id IS NULL AND e.status IN ('Completed', 'Failed')))
