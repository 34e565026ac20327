-- The fence of a commit: the commit is refused unless this deletes exactly one row.
DELETE FROM instance_locks WHERE instance_id = ?1 AND lock_token = ?2 AND locked_until > ?3
