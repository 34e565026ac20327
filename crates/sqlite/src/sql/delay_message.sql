UPDATE orchestrator_queue SET visible_at = ?2 WHERE id = ?1
