UPDATE instance_locks SET locked_until = max(locked_until, ?3)
WHERE instance_id = ?1 AND lock_token = ?2 AND locked_until > ?4
