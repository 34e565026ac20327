-- Sessions with free activities, found by skipping from one to the next, and their holders.
CREATE FUNCTION {schema}.waiting_sessions_1() RETURNS TABLE (o_session text, o_holder text) LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    RETURN QUERY
    WITH RECURSIVE waiting (session_id) AS (
        (SELECT q.session_id FROM {schema}.worker_queue AS q WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL
         ORDER BY q.session_id, q.id LIMIT 1)
        UNION ALL
        SELECT (SELECT q.session_id FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL AND q.session_id > w.session_id
                ORDER BY q.session_id, q.id LIMIT 1)
        FROM waiting AS w WHERE w.session_id IS NOT NULL
    )
    SELECT w.session_id::text, CASE WHEN s.locked_until > v_now THEN s.worker_id END::text FROM waiting AS w
    LEFT JOIN LATERAL (SELECT s.* FROM {schema}.sessions AS s WHERE s.session_id = w.session_id LIMIT 1) AS s ON true
    WHERE w.session_id IS NOT NULL;
END $$;
