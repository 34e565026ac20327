-- The condition of a run-ahead: one row if the execution runs, is the current one and ends with this event, and its instance has
-- neither a lease nor a hold nor a due message. The column says whether the execution changed keys.
SELECT EXISTS (SELECT 1 FROM kv_delta AS d WHERE d.instance_id = i.instance_id)
FROM instances AS i
JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
  AND e.execution_id = ?2
  AND e.status = 'Running'
  AND e.last_event_id = ?3
  AND NOT EXISTS (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = i.instance_id)
  AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = i.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS q WHERE q.instance_id = i.instance_id AND q.visible_at <= ?4)
