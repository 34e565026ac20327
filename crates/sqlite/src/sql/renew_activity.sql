UPDATE worker_queue SET locked_until = max(locked_until, ?3) WHERE id = ?1 AND lock_token = ?2 AND locked_until > ?4
