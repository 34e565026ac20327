-- A page of the messages of all instances in the order of arrival. Only the head of each text is read.
SELECT CASE WHEN q.external_bytes IS NULL THEN substr(q.work_item, 1, ?4)
            ELSE (SELECT substr(t.work_item, 1, ?4) FROM message_texts AS t WHERE t.message_id = q.id) END,
       coalesce(q.external_bytes, octet_length(q.work_item)), q.visible_at,
       (SELECT l.locked_until FROM instance_locks AS l
        WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > ?2),
       q.attempt_count, q.id, q.instance_id
FROM orchestrator_queue AS q WHERE q.id > ?1 ORDER BY q.id LIMIT (?3 + 0)
