-- Activities with an expired lease: the columns of free_activities and the tag. The caller sorts them, so that SQLite uses the
-- index on the lease.
SELECT q.id, q.work_item, q.attempt_count, q.instance_id, q.session_id, i.orchestration_name, i.orchestration_version,
       q.failures, q.last_error, q.tag
FROM worker_queue AS q LEFT JOIN instances AS i ON i.instance_id = q.instance_id
WHERE q.lock_token IS NOT NULL AND q.locked_until <= ?1 AND q.visible_at <= ?1
  AND (q.session_id IS NULL OR (?2 IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM sessions AS s
      WHERE s.session_id = q.session_id AND s.locked_until > ?1 AND s.worker_id <> ?2)))
