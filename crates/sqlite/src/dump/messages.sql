SELECT * FROM orchestrator_queue
