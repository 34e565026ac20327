UPDATE worker_queue SET locked_until = 0
WHERE lock_token IS NOT NULL AND locked_until > 0 AND substr(lock_token, 1, 8) = ?1
