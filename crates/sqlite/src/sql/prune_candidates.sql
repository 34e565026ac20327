-- Executions that pruning may delete; the ?2 newest are kept.
SELECT e.execution_id FROM executions AS e
JOIN instances AS i ON i.instance_id = e.instance_id
WHERE e.instance_id = ?1
  AND e.execution_id <> i.current_execution_id
  AND e.status <> 'Running'
  AND (?3 IS NULL OR e.completed_at < ?3)
  AND e.execution_id NOT IN (
      SELECT execution_id FROM executions WHERE instance_id = ?1 ORDER BY execution_id DESC LIMIT (?2 + 0))
