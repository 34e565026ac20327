-- The longest waiting instances without a lease, each with what is known about it.
SELECT q.instance_id, q.visible_at, q.id,
       i.orchestration_name, i.orchestration_version, i.current_execution_id,
       e.last_event_id,
       e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch, e.duroxide_version_pre
FROM orchestrator_queue AS q
LEFT JOIN instances AS i ON i.instance_id = q.instance_id
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE q.lock_token IS NULL
  AND q.visible_at <= ?1
  AND NOT EXISTS (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = q.instance_id AND l.locked_until > ?1)
ORDER BY q.visible_at, q.id
