-- Ends a lease that is over, so that its token is refused. A delay stays.
DELETE FROM instance_locks WHERE instance_id = ?1 AND lock_token <> x'' AND locked_until <= ?2
