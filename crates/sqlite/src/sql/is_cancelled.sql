-- Whether a cancellation waits for an instance. Reads the first characters of its messages.
SELECT EXISTS (
    SELECT 1 FROM orchestrator_queue AS q
    WHERE q.instance_id = ?1 AND '{"CancelInstance"' = CASE
        WHEN q.external_bytes IS NULL THEN substr(q.work_item, 1, 17)
        ELSE (SELECT substr(t.work_item, 1, 17) FROM message_texts AS t WHERE t.message_id = q.id) END)
