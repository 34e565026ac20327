-- Rows whose lease is over, with their tag.
SELECT q.id, q.tag FROM worker_queue AS q
WHERE q.lock_token IS NOT NULL AND q.locked_until <= ?1 AND q.visible_at <= ?1
  AND (q.session_id IS NULL OR (?2 IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM sessions AS s
      WHERE s.session_id = q.session_id AND s.locked_until > ?1 AND s.worker_id <> ?2)))
ORDER BY q.id
