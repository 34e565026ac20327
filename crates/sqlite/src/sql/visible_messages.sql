-- In the order of delivery. The caller reads rows up to the bound of a fetch.
SELECT id, work_item, available_at, attempt_count, external_bytes FROM orchestrator_queue
WHERE instance_id = ?1 AND visible_at <= ?2
ORDER BY available_at, id
