-- Undoes a fetch that came to nothing.
UPDATE orchestrator_queue
SET lock_token = NULL, locked_until = NULL, attempt_count = max(attempt_count - 1, 0)
WHERE instance_id = ?1 AND lock_token = ?2
