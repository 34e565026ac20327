SELECT session_id FROM worker_queue WHERE id = ?1
