SELECT id, work_item, available_at, attempt_count, external_bytes FROM orchestrator_queue
WHERE instance_id = ?1 AND visible_at <= ?2 AND begins = ?3
ORDER BY available_at, id
