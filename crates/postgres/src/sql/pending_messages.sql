-- Messages of an instance in the order of their delivery. The statement reads only the head of each text, and no row beyond the
-- limit, because payloads may be large.
SELECT left(q.work_item, $4) AS head, octet_length(q.work_item)::bigint AS bytes, q.visible_at, l.locked_until, q.attempt_count
FROM (SELECT id FROM {schema}.orchestrator_queue WHERE instance_id = $1 ORDER BY available_at, id LIMIT $3) AS first
JOIN {schema}.orchestrator_queue AS q ON q.id = first.id
LEFT JOIN {schema}.instance_locks AS l
  ON l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > $2
ORDER BY q.available_at, q.id
