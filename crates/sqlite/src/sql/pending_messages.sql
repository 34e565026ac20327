-- Messages of an instance in the order of their delivery. Only the head of each text is read, and no row beyond the limit,
-- because payloads may be large.
SELECT CASE WHEN q.external_bytes IS NULL THEN substr(q.work_item, 1, ?4)
            ELSE (SELECT substr(t.work_item, 1, ?4) FROM message_texts AS t WHERE t.message_id = q.id) END,
       coalesce(q.external_bytes, octet_length(q.work_item)), q.visible_at, l.locked_until, q.attempt_count
FROM orchestrator_queue AS q
LEFT JOIN instance_locks AS l
  ON l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > ?2
WHERE q.id IN (
    SELECT id FROM orchestrator_queue WHERE instance_id = ?1 ORDER BY available_at, id LIMIT (?3 + 0))
ORDER BY q.available_at, q.id
