SELECT
    (SELECT count(*) FROM {schema}.orchestrator_queue AS q
     WHERE (q.lock_token IS NULL OR NOT EXISTS (
         SELECT 1 FROM {schema}.instance_locks AS l
         WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > {schema}.now_ms()))
         AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = q.instance_id)) AS messages,
    (SELECT count(*) FROM {schema}.worker_queue AS w WHERE w.lock_token IS NULL OR w.locked_until <= {schema}.now_ms()) AS activities
