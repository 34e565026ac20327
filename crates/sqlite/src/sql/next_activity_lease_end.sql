SELECT min(locked_until) FROM worker_queue WHERE lock_token IS NOT NULL AND locked_until > ?1
