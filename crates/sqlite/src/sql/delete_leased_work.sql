-- The fence of an activity's completion.
DELETE FROM worker_queue WHERE id = ?1 AND lock_token = ?2 AND locked_until > ?3 RETURNING session_id
