SELECT min(visible_at) FROM worker_queue WHERE delayed = 1 AND visible_at > ?1
