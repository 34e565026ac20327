SELECT id, work_item, available_at, attempt_count FROM orchestrator_queue WHERE instance_id = ?1 AND visible_at <= ?2
