-- Frees the messages that an expired lease covered. Without such a lease no message is read.
UPDATE orchestrator_queue SET lock_token = NULL, locked_until = NULL, ready = 0
WHERE instance_id = ?1 AND lock_token IS NOT NULL
  AND EXISTS (SELECT 1 FROM instance_locks WHERE instance_id = ?1 AND locked_until <= ?2)
