-- Takes the messages of an instance out of the ready index, and frees those that an expired lease covered.
UPDATE orchestrator_queue SET ready = 0, lock_token = NULL, locked_until = NULL
WHERE instance_id = ?1 AND (ready = 1 OR lock_token IS NOT NULL)
