SELECT min(visible_at) FROM orchestrator_queue WHERE lock_token IS NULL AND visible_at > ?1
