-- The server's time, the end of the lease of an instance that is not held, and the numbers of its messages and activities.
SELECT t.now, (SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = $1 AND l.locked_until > t.now
            AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = $1))
           AS locked_until,
       (SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1) AS messages,
       (SELECT count(*) FROM {schema}.worker_queue AS w WHERE w.instance_id = $1) AS activities
FROM (SELECT {schema}.now_ms() AS now OFFSET 0) AS t
