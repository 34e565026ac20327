UPDATE sessions SET locked_until = max(locked_until, ?2), owner = ?5
WHERE locked_until > ?3 AND worker_id = ?1 AND last_activity_at > ?4
