SELECT min(visible_at) FROM orchestrator_queue WHERE ready = 1 AND visible_at > ?1
