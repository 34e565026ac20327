-- A page of the activities of all instances in the order of arrival. The statement reads only the head of each text.
SELECT left(w.work_item, $4) AS head, octet_length(w.work_item)::bigint AS bytes, w.visible_at,
       CASE WHEN w.lock_token IS NOT NULL AND w.locked_until > $2 THEN w.locked_until END AS locked_until, w.attempt_count, w.tag, w.session_id,
       w.failures, w.id, w.instance_id
FROM (SELECT id FROM {schema}.worker_queue WHERE id > $1 ORDER BY id LIMIT $3) AS first
JOIN {schema}.worker_queue AS w ON w.id = first.id
ORDER BY w.id
