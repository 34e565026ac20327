SELECT instance_id FROM worker_queue WHERE visible_at > ?1 AND delayed = 0
