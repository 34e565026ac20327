-- For each queue: all rows, rows under a live lease, and delayed rows, counted in indexes. The messages of held instances count
-- as leased, and not as delayed.
SELECT
    (SELECT count(*) FROM orchestrator_queue),
    (SELECT count(*) FROM instance_locks AS l
     CROSS JOIN orchestrator_queue AS q ON q.instance_id = l.instance_id AND q.lock_token = l.lock_token
     WHERE l.locked_until > ?1)
    + (SELECT count(*) FROM holds AS h CROSS JOIN orchestrator_queue AS q ON q.instance_id = h.instance_id),
    (SELECT count(*) FROM orchestrator_queue AS q
     WHERE q.visible_at > ?1 AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = q.instance_id)),
    (SELECT count(*) FROM worker_queue),
    (SELECT count(*) FROM worker_queue AS w WHERE w.lock_token IS NOT NULL AND w.locked_until > ?1),
    (SELECT count(*) FROM worker_queue AS w WHERE w.delayed = 1 AND w.lock_token IS NULL AND w.visible_at > ?1)
