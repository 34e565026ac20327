-- Whether this owner holds no lease at this time.
SELECT NOT EXISTS (SELECT 1 FROM instance_locks WHERE substr(lock_token, 1, 8) = ?1 AND locked_until > ?2)
   AND NOT EXISTS (SELECT 1 FROM worker_queue
                   WHERE lock_token IS NOT NULL AND locked_until > ?2 AND substr(lock_token, 1, 8) = ?1)
   AND NOT EXISTS (SELECT 1 FROM sessions WHERE locked_until > ?2 AND owner = ?1)
