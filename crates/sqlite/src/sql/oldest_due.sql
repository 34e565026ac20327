-- For each queue the earliest visible_at of the items that a fetch may take. The first message of an instance whose lease is over is not
-- ready until a fetch lists the expired leases.
SELECT
    (SELECT min(at) FROM (
        SELECT (SELECT q.visible_at FROM orchestrator_queue AS q
                WHERE q.ready = 1 AND q.visible_at <= ?1 AND NOT EXISTS (
                    SELECT 1 FROM instance_locks AS l WHERE l.instance_id = q.instance_id AND l.locked_until > ?1)
                ORDER BY q.visible_at, q.id LIMIT 1) AS at
        UNION ALL
        SELECT min(q.visible_at) FROM instance_locks AS l CROSS JOIN orchestrator_queue AS q ON q.instance_id = l.instance_id
        WHERE l.locked_until <= ?1 AND q.visible_at <= ?1
          AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = l.instance_id))),
    (SELECT min(w.visible_at) FROM worker_queue AS w
     WHERE w.visible_at <= ?1 AND (w.lock_token IS NULL OR w.locked_until <= ?1))
