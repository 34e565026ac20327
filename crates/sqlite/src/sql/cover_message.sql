-- cover_messages for one message.
UPDATE OR FAIL orchestrator_queue
SET lock_token = ?2, locked_until = ?3, ready = 0, attempt_count = attempt_count + 1
WHERE id = ?1
