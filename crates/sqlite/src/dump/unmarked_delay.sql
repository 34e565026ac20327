SELECT instance_id || ' ' || execution_id || ' ' || activity_id || ' ' || visible_at FROM worker_queue
WHERE visible_at > ?1 AND delayed = 0
