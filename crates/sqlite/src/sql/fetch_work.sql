-- Leases the oldest free rows of one tag (NULL: untagged). ?6 is the session owner, NULL for callers without one.
UPDATE worker_queue
SET lock_token = ?1 || id, locked_until = ?2, attempt_count = attempt_count + 1, delayed = 0
WHERE id IN (
    SELECT q.id FROM worker_queue AS q
    WHERE q.lock_token IS NULL AND q.tag IS ?4 AND q.visible_at <= ?3
      AND (q.session_id IS NULL OR (?6 IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM sessions AS s
          WHERE s.session_id = q.session_id AND s.locked_until > ?3 AND s.worker_id <> ?6)))
    ORDER BY q.id LIMIT ?5
)
RETURNING id, work_item, lock_token, attempt_count, instance_id, session_id
