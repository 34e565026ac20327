-- ?6: now. The message is not ready if its instance has a live lease, is held, or has a ready message that is visible as early.
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, external_bytes, ready)
VALUES (?1, ?2, ?3, ?3, ?4, ?5,
    NOT EXISTS (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = ?1 AND l.locked_until > ?6)
    AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = ?1)
    AND NOT EXISTS (
        SELECT 1 FROM orchestrator_queue AS f
        WHERE f.instance_id = ?1 AND f.available_at <= ?3 AND f.visible_at <= ?3 AND f.ready = 1
    ))
