UPDATE orchestrator_queue SET ready = 1 WHERE id = ?1
