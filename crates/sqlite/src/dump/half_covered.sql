SELECT instance_id FROM orchestrator_queue WHERE (lock_token IS NULL) <> (locked_until IS NULL)
