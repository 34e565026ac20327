-- OR FAIL as in insert_two_events.
UPDATE OR FAIL orchestrator_queue
SET lock_token = ?2, locked_until = ?3, ready = 0, attempt_count = attempt_count + 1
WHERE instance_id = ?1 AND visible_at <= ?4
