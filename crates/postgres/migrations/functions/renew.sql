-- Prolongs leases of turns ({KIND_TURN}, by instance) and activities ({KIND_ACTIVITY}, by row). Returns the members that hold one.
CREATE FUNCTION {schema}.renew_1(
    p_member integer[], p_kind integer[], p_instance text[], p_activity_row bigint[], p_secret bytea[], p_extend bigint[]
) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now      bigint;
    v_renewed  bytea[];
    v_sessions text[];
BEGIN
    IF {KIND_TURN} = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE {schema}.instance_locks AS l
            SET locked_until = greatest(l.locked_until, {schema}.now_ms() + m.extend)
            FROM unnest(p_kind, p_instance, p_secret, p_extend) AS m (kind, instance_id, secret, extend)
            WHERE m.kind = {KIND_TURN} AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                AND l.locked_until > {schema}.now_ms()
            RETURNING l.lock_token
        )
        SELECT array_agg(r.lock_token) INTO v_renewed FROM renewed AS r;
    END IF;
    IF {KIND_ACTIVITY} = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE {schema}.worker_queue AS q
            SET locked_until = greatest(q.locked_until, {schema}.now_ms() + m.extend)
            FROM unnest(p_kind, p_activity_row, p_secret, p_extend) AS m (kind, id, secret, extend)
            WHERE m.kind = {KIND_ACTIVITY} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
                AND q.locked_until > {schema}.now_ms()
            RETURNING q.lock_token, q.session_id
        )
        SELECT v_renewed || array_agg(r.lock_token), array_agg(r.session_id) FILTER (WHERE r.session_id IS NOT NULL)
        INTO v_renewed, v_sessions FROM renewed AS r;
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.touch_sessions_1(v_sessions);
        END IF;
    END IF;
    -- A lease that two members renew is renewed for both.
    RETURN QUERY SELECT m.member FROM unnest(p_member, p_secret) AS m (member, secret) WHERE m.secret = ANY (v_renewed);
END $$;
