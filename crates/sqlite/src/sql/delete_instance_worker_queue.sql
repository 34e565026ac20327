DELETE FROM worker_queue WHERE instance_id = ?1
