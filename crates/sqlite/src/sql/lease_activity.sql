-- OR FAIL as in insert_two_events.
UPDATE OR FAIL worker_queue
SET lock_token = ?2, locked_until = ?3, attempt_count = attempt_count + 1, delayed = 0
WHERE id = ?1 AND (lock_token IS NULL OR locked_until <= ?4)
