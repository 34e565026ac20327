INSERT INTO instance_locks (instance_id, lock_token, locked_until, locked_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (instance_id) DO UPDATE
SET lock_token = excluded.lock_token, locked_until = excluded.locked_until, locked_at = excluded.locked_at
WHERE instance_locks.locked_until <= ?4
