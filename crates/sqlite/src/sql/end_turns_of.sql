-- Ends the leases of turns of a dead owner for every clock. The rows of delays have no owner in their token.
UPDATE instance_locks SET locked_until = 0 WHERE substr(lock_token, 1, 8) = ?1 AND locked_until > 0
