SELECT instance_id FROM worker_queue WHERE (lock_token IS NULL) <> (locked_until IS NULL)
