SELECT min(locked_until) FROM sessions WHERE locked_until > ?1
