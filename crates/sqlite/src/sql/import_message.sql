-- The message is not ready: the import makes the first message ready after all are stored.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, external_bytes, attempt_count, ready)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)
