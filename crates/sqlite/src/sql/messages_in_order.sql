-- The messages of an instance in the order of delivery. The caller reads rows until it has found the first visible one.
SELECT id, visible_at, available_at, ready FROM orchestrator_queue WHERE instance_id = ?1 ORDER BY available_at, id
