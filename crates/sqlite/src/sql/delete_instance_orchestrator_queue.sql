DELETE FROM orchestrator_queue WHERE instance_id = ?1
