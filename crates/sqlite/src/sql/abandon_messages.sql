UPDATE orchestrator_queue
SET lock_token = NULL, locked_until = NULL, visible_at = ifnull(?3, visible_at),
    attempt_count = max(attempt_count - ?4, 0)
WHERE instance_id = ?1 AND available_at <= ?5 AND lock_token = ?2
