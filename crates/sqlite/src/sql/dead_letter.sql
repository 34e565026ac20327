INSERT INTO dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
