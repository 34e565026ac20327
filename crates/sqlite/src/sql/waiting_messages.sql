-- Whatever may start the instance.
SELECT work_item, visible_at FROM orchestrator_queue WHERE instance_id = ?1 AND begins <> 0
