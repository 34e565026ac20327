DELETE FROM sessions
WHERE locked_until < ?1
  AND NOT EXISTS (SELECT 1 FROM worker_queue AS w WHERE w.session_id = sessions.session_id)
