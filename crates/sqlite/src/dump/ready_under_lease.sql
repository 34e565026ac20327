SELECT q.instance_id FROM orchestrator_queue AS q
JOIN instance_locks AS l ON l.instance_id = q.instance_id AND l.lock_token = q.lock_token
WHERE q.ready <> 0 AND l.locked_until > ?1
