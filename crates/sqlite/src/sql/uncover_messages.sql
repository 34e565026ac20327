-- What a lease that is over covered is free again, where the next one does not cover all of it.
UPDATE orchestrator_queue SET lock_token = NULL, locked_until = NULL WHERE instance_id = ?1 AND lock_token IS NOT NULL
