-- Ends the leases of a dead owner, as time would, and notifies the registered processes. Returns their number, or NULL if the owner is
-- alive: the lock keeps the owner from returning meanwhile. This transaction waits for no row, so no deadlock includes it. Rows that it
-- skips are left, with the owner, to the next look: a transaction that the owner sent before its death may hold them.
CREATE FUNCTION {schema}.end_leases_1(p_channel text, p_sender text, p_owner bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now        bigint;
    v_name       bytea := int8send(p_owner);
    v_turns      bigint;
    v_activities bigint;
    v_sessions   bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(p_owner) THEN
        RETURN NULL;
    END IF;
    v_now := {schema}.now_ms();
    WITH held AS MATERIALIZED (
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.locked_until > v_now AND substring(l.lock_token FROM 1 FOR 8) = v_name FOR UPDATE SKIP LOCKED
    )
    UPDATE {schema}.instance_locks AS l SET locked_until = v_now
    FROM held AS h WHERE l.instance_id = ANY (ARRAY[h.instance_id]);
    GET DIAGNOSTICS v_turns = ROW_COUNT;
    WITH held AS MATERIALIZED (
        SELECT q.id FROM {schema}.worker_queue AS q
        WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now AND substring(q.lock_token FROM 1 FOR 8) = v_name
        FOR UPDATE SKIP LOCKED
    )
    UPDATE {schema}.worker_queue AS q SET locked_until = v_now
    FROM held AS h WHERE q.id = ANY (ARRAY[h.id]);
    GET DIAGNOSTICS v_activities = ROW_COUNT;
    WITH held AS MATERIALIZED (
        SELECT s.session_id FROM {schema}.sessions AS s
        WHERE s.locked_until > v_now AND s.owner = v_name FOR UPDATE SKIP LOCKED
    )
    UPDATE {schema}.sessions AS s SET locked_until = v_now
    FROM held AS h WHERE s.session_id = ANY (ARRAY[h.session_id]);
    GET DIAGNOSTICS v_sessions = ROW_COUNT;
    IF NOT {schema}.holds_lease_1(p_owner) THEN
        DELETE FROM {schema}.owners AS o WHERE o.owner = p_owner;
        DELETE FROM {schema}.listeners AS l WHERE left(l.id, 16) = encode(v_name, 'hex');
    END IF;
    IF v_turns + v_activities + v_sessions > 0 THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, l.id, l.id, '[]'::jsonb, 0)::text)
        FROM {schema}.listeners AS l WHERE l.id <> p_sender AND l.expires_at > v_now;
    END IF;
    RETURN v_turns + v_activities + v_sessions;
END $$;
