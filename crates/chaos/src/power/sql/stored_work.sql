SELECT instance_id, activity_id FROM worker_queue ORDER BY id
