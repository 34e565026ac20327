-- Oldest first. ?3: only finished roots.
SELECT i.rowid, i.instance_id FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.rowid > ?1
  AND (?2 IS NULL OR e.completed_at < ?2)
  AND (NOT ?3 OR (i.parent_instance_id IS NULL AND e.status IN ('Completed', 'Failed')))
ORDER BY i.rowid LIMIT (?4 + 0)
