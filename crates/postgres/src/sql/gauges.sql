-- Instances whose current execution runs, by the partial index on executions; and for each queue the items that wait, and those
-- of them that are not due. With the scalar subquery, every plan reads the instances one by one.
WITH clock AS MATERIALIZED (SELECT {schema}.now_ms() AS now)
SELECT
    (SELECT count(*) FROM {schema}.executions AS e
     WHERE e.status IN ('Running', 'Failed') AND e.status = 'Running' AND e.execution_id = (
         SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = e.instance_id)) AS running,
    q.waiting AS messages, q.later AS later_messages, w.waiting AS activities, w.later AS later_activities
FROM (
    SELECT count(*) AS waiting, count(*) FILTER (WHERE q.visible_at > (SELECT now FROM clock)) AS later
    FROM {schema}.orchestrator_queue AS q
    WHERE (q.lock_token IS NULL OR NOT EXISTS (
        SELECT 1 FROM {schema}.instance_locks AS l
        WHERE l.instance_id = q.instance_id AND l.lock_token = q.lock_token AND l.locked_until > (SELECT now FROM clock)))
        AND NOT EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = q.instance_id)
) AS q, (
    SELECT count(*) AS waiting, count(*) FILTER (WHERE w.visible_at > (SELECT now FROM clock)) AS later
    FROM {schema}.worker_queue AS w
    WHERE w.lock_token IS NULL OR w.locked_until <= (SELECT now FROM clock)
) AS w
