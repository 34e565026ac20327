-- Live leases at ?1, and timers in a table that the release does not use.
SELECT CAST((SELECT count(*) FROM instance_locks WHERE locked_until > CAST(?1 AS INTEGER))
          + (SELECT count(*) FROM worker_queue WHERE lock_token IS NOT NULL AND locked_until > CAST(?1 AS INTEGER)) AS TEXT),
       CAST((SELECT count(*) FROM timer_queue) AS TEXT)
