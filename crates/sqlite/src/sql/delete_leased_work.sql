-- The fence of an activity's completion: nothing is written unless this deletes exactly one row.
DELETE FROM worker_queue WHERE id = ?1 AND lock_token = ?2 AND locked_until > ?3
