-- The server's time, the end of the lease that an instance is under, and how many messages and activities wait for it.
SELECT t.now, (SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = $1 AND l.locked_until > t.now),
       (SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1),
       (SELECT count(*) FROM {schema}.worker_queue AS w WHERE w.instance_id = $1)
FROM (SELECT {schema}.now_ms() AS now OFFSET 0) AS t
