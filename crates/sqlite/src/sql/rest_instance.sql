-- The lease becomes a rest, which nobody holds: its token is not one that could be minted.
UPDATE instance_locks SET lock_token = x'', locked_until = ?3 WHERE instance_id = ?1 AND lock_token = ?2
