DELETE FROM instance_locks WHERE instance_id = ?1
