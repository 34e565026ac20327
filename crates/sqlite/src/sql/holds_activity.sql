-- One row if the token leases the activity now.
SELECT 1 FROM worker_queue WHERE id = ?1 AND lock_token = ?2 AND locked_until > ?3
