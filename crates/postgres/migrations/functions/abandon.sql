-- Gives leases of turns ({KIND_TURN}) and activities ({KIND_ACTIVITY}) back. A lease that is over can be given back until another
-- fetch takes its place. A delay of NULL leaves the messages of a turn visible as they were. With p_holds_back the messages that a partial
-- fetch of a turn left behind wait for the delay too: the lease becomes a rest, which has no holder. Returns the members that had a
-- lease.
CREATE FUNCTION {schema}.abandon_1(
    p_member integer[], p_kind integer[], p_instance text[], p_activity_row bigint[], p_secret bytea[], p_delay bigint[], p_ignore boolean[],
    p_holds_back boolean[]
) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now     bigint;
    v_members integer[];
    v_rested  integer[];
BEGIN
    IF {KIND_TURN} = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM {schema}.instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret, p_holds_back) AS m (member, kind, instance_id, secret, holds_back)
            WHERE m.kind = {KIND_TURN} AND NOT m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
            RETURNING m.member
        )
        SELECT array_agg(f.member) INTO v_members FROM freed AS f;
        IF true = ANY (p_holds_back) THEN
            WITH rested AS (
                UPDATE {schema}.instance_locks AS l SET lock_token = ''
                FROM unnest(p_member, p_instance, p_secret, p_holds_back) AS m (member, instance_id, secret, holds_back)
                WHERE m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                RETURNING m.member
            )
            SELECT array_agg(r.member) INTO v_rested FROM rested AS r;
            v_members := v_members || v_rested;
        END IF;
        v_now := {schema}.now_ms();
        IF v_rested IS NOT NULL THEN
            UPDATE {schema}.instance_locks AS l SET locked_until = v_now + m.delay
            FROM unnest(p_member, p_instance, p_delay) AS m (member, instance_id, delay)
            WHERE m.member = ANY (v_rested) AND l.instance_id = ANY (ARRAY[m.instance_id]);
        END IF;
        UPDATE {schema}.orchestrator_queue AS q
        SET lock_token = NULL, visible_at = coalesce(v_now + m.delay, q.visible_at),
            attempt_count = greatest(q.attempt_count - m.ignore::integer, 0)
        FROM unnest(p_member, p_instance, p_secret, p_delay, p_ignore) AS m (member, instance_id, secret, delay, ignore)
        WHERE m.member = ANY (v_members) AND q.instance_id = ANY (ARRAY[m.instance_id])
            AND q.lock_token = m.secret;
        RETURN QUERY SELECT a.member FROM unnest(v_members) AS a (member);
    END IF;
    IF {KIND_ACTIVITY} = ANY (p_kind) THEN
        v_now := {schema}.now_ms();
        RETURN QUERY UPDATE {schema}.worker_queue AS q
        SET lock_token = NULL, locked_until = NULL, visible_at = v_now + coalesce(m.delay, 0),
            delayed = coalesce(m.delay, 0) > 0, attempt_count = greatest(q.attempt_count - m.ignore::integer, 0)
        FROM unnest(p_member, p_kind, p_activity_row, p_secret, p_delay, p_ignore) AS m (member, kind, id, secret, delay, ignore)
        WHERE m.kind = {KIND_ACTIVITY} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING m.member;
    END IF;
END $$;
