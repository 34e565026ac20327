-- Texts without a message, messages without their text, and texts whose length differs from that in their message.
SELECT coalesce(q.instance_id, t.message_id) FROM message_texts AS t
LEFT JOIN orchestrator_queue AS q ON q.id = t.message_id
WHERE q.external_bytes IS NOT octet_length(t.work_item)
UNION ALL
SELECT q.instance_id FROM orchestrator_queue AS q
WHERE q.external_bytes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_texts AS t WHERE t.message_id = q.id)
