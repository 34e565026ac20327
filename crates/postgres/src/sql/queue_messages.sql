-- A page of the messages of all instances in the order of arrival. The statement reads only the head of each text.
SELECT left(q.work_item, $4) AS head, octet_length(q.work_item)::bigint AS bytes, q.visible_at, l.locked_until, q.attempt_count,
       q.id, q.instance_id
FROM (SELECT id FROM {schema}.orchestrator_queue WHERE id > $1 ORDER BY id LIMIT $3) AS first
JOIN {schema}.orchestrator_queue AS q ON q.id = first.id
LEFT JOIN {schema}.instance_locks AS l
  ON l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > $2
ORDER BY q.id
