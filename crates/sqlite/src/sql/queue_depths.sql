SELECT
    (SELECT count(*) FROM orchestrator_queue AS q
     WHERE (q.lock_token IS NULL OR NOT EXISTS (
         SELECT 1 FROM instance_locks AS l
         WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > ?1))
       AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = q.instance_id)),
    (SELECT count(*) FROM worker_queue WHERE lock_token IS NULL OR locked_until <= ?1)
