-- Gives an activity back whose handler has failed, and keeps the failure. The delivery is not counted.
UPDATE worker_queue
SET lock_token = NULL, locked_until = NULL, visible_at = ?3, delayed = ?4, attempt_count = max(attempt_count - 1, 0),
    failures = failures + 1, last_error = ?5
WHERE id = ?1 AND lock_token = ?2
