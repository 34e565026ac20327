-- Instances with an expired lease, each with its oldest message, which decides the order. The columns of candidate_turns.
-- CROSS JOIN: the leases are few, so SQLite must read them before the queue.
SELECT l.instance_id, min(q.visible_at), q.id,
       CASE WHEN NOT EXISTS (
           SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = l.instance_id AND m.id <> q.id
       ) THEN q.work_item END,
       q.available_at, q.attempt_count,
       i.orchestration_name, i.orchestration_version, i.current_execution_id, e.last_event_id,
       e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch, e.duroxide_version_pre,
       1 + EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = l.instance_id AND m.id <> q.id),
       i.instance_id IS NULL AND EXISTS (SELECT 1 FROM history AS h WHERE h.instance_id = l.instance_id),
       EXISTS (SELECT 1 FROM kv_delta AS d WHERE d.instance_id = l.instance_id),
       i.created_at, e.status IN ('Completed', 'Failed'), q.external_bytes
FROM instance_locks AS l
CROSS JOIN orchestrator_queue AS q ON q.instance_id = l.instance_id AND q.lock_token IS NOT NULL
LEFT JOIN instances AS i ON i.instance_id = l.instance_id
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE l.locked_until <= ?1
GROUP BY l.instance_id
ORDER BY 2, 3
