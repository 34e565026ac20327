-- The oldest activities of one tag (NULL: without a tag) that are not leased. ?4: the session owner, NULL for a caller without one.
SELECT q.id, q.work_item, q.attempt_count, q.instance_id, q.session_id, i.orchestration_name, i.orchestration_version,
       q.failures, q.last_error
FROM worker_queue AS q LEFT JOIN instances AS i ON i.instance_id = q.instance_id
WHERE q.lock_token IS NULL AND q.tag IS ?2 AND q.visible_at <= ?1
  AND (q.session_id IS NULL OR (?4 IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM sessions AS s
      WHERE s.session_id = q.session_id AND s.locked_until > ?1 AND s.worker_id <> ?4)))
ORDER BY q.id LIMIT (?3 + 0)
