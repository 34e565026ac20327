UPDATE worker_queue
SET lock_token = NULL, locked_until = NULL, visible_at = ?3, delayed = ?4, attempt_count = max(attempt_count - ?5, 0)
WHERE id = ?1 AND lock_token = ?2
