-- Undoes the cover of a fetch that makes no turn, and the delivery that it counted.
UPDATE orchestrator_queue
SET lock_token = NULL, locked_until = NULL, attempt_count = attempt_count - 1
WHERE instance_id = ?1 AND available_at <= ?3 AND lock_token = ?2
