DELETE FROM orchestrator_queue WHERE instance_id = ?1 AND available_at <= ?3 AND lock_token = ?2
