-- Activities of an instance, oldest first. Only the head of each text is read, and no row beyond the limit.
SELECT substr(w.work_item, 1, ?4), octet_length(w.work_item), w.visible_at,
       CASE WHEN w.lock_token IS NOT NULL AND w.locked_until > ?2 THEN w.locked_until END, w.attempt_count, w.tag, w.session_id,
       w.failures
FROM worker_queue AS w
WHERE w.id IN (SELECT id FROM worker_queue WHERE instance_id = ?1 ORDER BY id LIMIT (?3 + 0))
ORDER BY w.id
