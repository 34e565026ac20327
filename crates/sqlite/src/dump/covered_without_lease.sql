SELECT instance_id FROM orchestrator_queue AS q
WHERE lock_token IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM instance_locks AS l
    WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until = q.locked_until
)
