-- Notes that sessions are used. Every transaction locks sessions in the same order.
CREATE FUNCTION {schema}.touch_sessions_1(p_sessions text[]) RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    UPDATE {schema}.sessions AS s SET last_activity_at = v_now
    FROM (SELECT l.session_id FROM unnest(p_sessions) AS n (session_id)
          JOIN {schema}.sessions AS l ON l.session_id = ANY (ARRAY[n.session_id])
          ORDER BY n.session_id COLLATE "C" FOR UPDATE OF l) AS l
    WHERE s.session_id = ANY (ARRAY[l.session_id]) AND s.locked_until > v_now;
END $$;
