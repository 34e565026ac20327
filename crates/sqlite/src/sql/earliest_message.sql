SELECT min(available_at) FROM orchestrator_queue WHERE instance_id = ?1
