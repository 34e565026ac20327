-- Turns with messages, and activities, whose lease has ended; and instances whose first message is due since a time.
SELECT
    (SELECT count(*) FROM instance_locks AS l
     WHERE l.locked_until <= ?1
       AND EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = l.instance_id AND m.visible_at <= ?1)
       AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = l.instance_id)),
    (SELECT count(*) FROM worker_queue WHERE lock_token IS NOT NULL AND locked_until <= ?1 AND visible_at <= ?1),
    (SELECT count(*) FROM orchestrator_queue WHERE ready = 1 AND visible_at <= ?2)
