SELECT work_item, visible_at FROM orchestrator_queue WHERE instance_id = ?1
