DELETE FROM orchestrator_queue WHERE id = ?1
