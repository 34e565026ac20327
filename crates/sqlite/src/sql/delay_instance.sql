-- Turns the lease into a delay of the instance: the new lock_token is not a valid secret, so no caller holds the lease.
UPDATE instance_locks SET lock_token = x'', locked_until = ?3 WHERE instance_id = ?1 AND lock_token = ?2
