DELETE FROM worker_queue WHERE id = ?1
