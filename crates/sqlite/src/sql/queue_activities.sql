-- A page of the activities of all instances in the order of arrival. Only the head of each text is read.
SELECT substr(w.work_item, 1, ?4), octet_length(w.work_item), w.visible_at,
       CASE WHEN w.lock_token IS NOT NULL AND w.locked_until > ?2 THEN w.locked_until END, w.attempt_count, w.id, w.instance_id,
       w.tag, w.session_id, w.failures
FROM worker_queue AS w WHERE w.id > ?1 ORDER BY w.id LIMIT (?3 + 0)
