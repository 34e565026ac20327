-- Instances whose lease is over, with their place in line: the end of the lease, and their first message.
SELECT l.instance_id, l.locked_until, min(q.id),
       i.orchestration_name, i.orchestration_version, i.current_execution_id,
       e.last_event_id,
       e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch, e.duroxide_version_pre
FROM instance_locks AS l
JOIN orchestrator_queue AS q ON q.instance_id = l.instance_id AND q.lock_token IS NOT NULL
LEFT JOIN instances AS i ON i.instance_id = l.instance_id
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE l.locked_until <= ?1
GROUP BY l.instance_id
ORDER BY l.locked_until, 3
