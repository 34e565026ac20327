SELECT min(locked_until) FROM instance_locks WHERE locked_until > ?1
