-- Instances without a live lease, each with its first message and the columns of its rows; the oldest messages first. The text of
-- the message is NULL unless it is the only one. An instance may occur more than once.
-- The last six columns: 1 if it is the only message, else 2; whether an instance without a row has a history, whether
-- the current execution changed keys, when the instance was created, whether it has ended, the length of the text in message_texts.
SELECT q.instance_id, q.visible_at, q.id,
       CASE WHEN typeof(q.instance_id) <> 'text' OR NOT EXISTS (
           SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = q.instance_id AND m.id <> q.id
       ) THEN q.work_item END,
       q.available_at, q.attempt_count,
       i.orchestration_name, i.orchestration_version, i.current_execution_id, e.last_event_id,
       e.duroxide_version_major, e.duroxide_version_minor, e.duroxide_version_patch, e.duroxide_version_pre,
       1 + EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = q.instance_id AND m.id <> q.id),
       i.instance_id IS NULL AND EXISTS (SELECT 1 FROM history AS h WHERE h.instance_id = q.instance_id),
       EXISTS (SELECT 1 FROM kv_delta AS d WHERE d.instance_id = q.instance_id),
       i.created_at, e.status IN ('Completed', 'Failed'), q.external_bytes
FROM orchestrator_queue AS q
LEFT JOIN instances AS i ON i.instance_id = q.instance_id
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE q.ready = 1
  AND q.visible_at <= ?1
  AND NOT EXISTS (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = q.instance_id AND l.locked_until > ?1)
ORDER BY q.visible_at, q.id
