-- The end of the lease of an instance that is not held, and the numbers of its messages and activities.
SELECT (SELECT locked_until FROM instance_locks WHERE instance_id = ?1 AND locked_until > ?2
        AND NOT EXISTS (SELECT 1 FROM holds WHERE instance_id = ?1)),
       (SELECT count(*) FROM orchestrator_queue WHERE instance_id = ?1),
       (SELECT count(*) FROM worker_queue WHERE instance_id = ?1)
