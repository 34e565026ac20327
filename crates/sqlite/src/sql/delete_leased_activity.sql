-- The fence of a completion: the completion is refused unless this deletes exactly one row.
DELETE FROM worker_queue WHERE id = ?1 AND lock_token = ?2 AND locked_until > ?3
