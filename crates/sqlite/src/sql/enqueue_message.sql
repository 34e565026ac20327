INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, external_bytes)
VALUES (?1, ?2, ?3, ?3, ?4, ?5)
