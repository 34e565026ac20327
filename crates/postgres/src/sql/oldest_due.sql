-- For each queue the longest wait of the items that a fetch may take. A held instance has a rest without an end in instance_locks.
WITH clock AS MATERIALIZED (SELECT {schema}.now_ms() AS now)
SELECT
    (SELECT now FROM clock) - (
        SELECT min(q.visible_at) FROM {schema}.orchestrator_queue AS q
        WHERE q.visible_at <= (SELECT now FROM clock) AND NOT EXISTS (
            SELECT 1 FROM {schema}.instance_locks AS l
            WHERE l.instance_id = q.instance_id AND l.lock_token IS NOT NULL
                AND l.locked_until > (SELECT now FROM clock))) AS message_ms,
    (SELECT now FROM clock) - (
        SELECT min(w.visible_at) FROM {schema}.worker_queue AS w
        WHERE w.visible_at <= (SELECT now FROM clock)
            AND (w.lock_token IS NULL OR w.locked_until <= (SELECT now FROM clock))) AS activity_ms
