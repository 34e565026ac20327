INSERT INTO sessions (session_id, worker_id, locked_until, last_activity_at, owner) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (session_id) DO UPDATE
SET worker_id = excluded.worker_id, locked_until = excluded.locked_until, last_activity_at = excluded.last_activity_at,
    owner = excluded.owner
WHERE sessions.locked_until <= ?4 OR sessions.worker_id = excluded.worker_id
