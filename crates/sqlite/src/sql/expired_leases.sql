SELECT instance_id FROM instance_locks WHERE locked_until <= ?1
