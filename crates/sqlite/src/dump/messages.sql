SELECT q.instance_id, q.visible_at, q.available_at, q.lock_token, q.locked_until, q.attempt_count,
       CASE WHEN q.external_bytes IS NULL THEN q.work_item ELSE t.work_item END AS work_item
FROM orchestrator_queue AS q LEFT JOIN message_texts AS t ON t.message_id = q.id
