DELETE FROM instance_locks WHERE instance_id = ?1 AND lock_token = ?2
