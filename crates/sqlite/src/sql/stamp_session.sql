UPDATE sessions SET last_activity_at = ?2 WHERE session_id = ?1 AND locked_until > ?2
