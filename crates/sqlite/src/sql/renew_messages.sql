UPDATE orchestrator_queue SET locked_until = max(locked_until, ?3) WHERE instance_id = ?1 AND available_at <= ?4 AND lock_token = ?2
