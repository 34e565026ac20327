-- The clock is read after the rows are locked. A process that continues with the sessions of an earlier one owns them from then
-- on.
WITH held AS MATERIALIZED (
    SELECT s.session_id FROM {schema}.sessions AS s WHERE s.worker_id = ANY ($1) ORDER BY s.session_id FOR UPDATE
), renewed AS (
    UPDATE {schema}.sessions AS s SET locked_until = greatest(s.locked_until, {schema}.now_ms() + $2), owner = $4
    FROM held AS h
    WHERE s.session_id = h.session_id AND s.locked_until > {schema}.now_ms() AND s.last_activity_at > {schema}.now_ms() - $3
    RETURNING 1
)
SELECT count(*) FROM renewed
