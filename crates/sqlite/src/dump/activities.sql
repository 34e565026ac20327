SELECT * FROM worker_queue
