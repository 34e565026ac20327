UPDATE orchestrator_queue
SET lock_token = ?2, locked_until = ?3, attempt_count = attempt_count + 1
WHERE instance_id = ?1 AND visible_at <= ?4
