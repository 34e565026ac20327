-- Gives leases of turns ({KIND_TURN}) and activities ({KIND_ACTIVITY}) back. A lease that is over can be given back until another
-- fetch takes its place. A delay of NULL leaves the messages of a turn visible as they were. With p_holds_back the messages that a partial
-- fetch of a turn left behind wait for the delay too: the lease becomes a rest, which has no holder. Returns the members that had a
-- lease. A note is the failure of an activity's handler: it is counted and kept.
CREATE FUNCTION {schema}.abandon_1(
    p_member integer[], p_kind integer[], p_instance text[], p_activity_row bigint[], p_secret bytea[], p_delay bigint[], p_ignore boolean[],
    p_holds_back boolean[], p_note text[]
) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now     bigint;
    v_members integer[];
    v_rested  integer[];
    -- Members whose lease names its messages, and these; instances that may have messages that are set aside.
    v_partial integer[];
    v_covers  text[];
    v_aside   text[];
BEGIN
    IF {KIND_TURN} = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM {schema}.instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret, p_holds_back) AS m (member, kind, instance_id, secret, holds_back)
            WHERE m.kind = {KIND_TURN} AND NOT m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
            RETURNING m.member, m.instance_id, l.has_aside, l.covers
        )
        SELECT array_agg(f.member), array_agg(f.member) FILTER (WHERE f.covers IS NOT NULL),
               array_agg(f.covers::text) FILTER (WHERE f.covers IS NOT NULL), array_agg(f.instance_id) FILTER (WHERE f.has_aside)
        INTO v_members, v_partial, v_covers, v_aside FROM freed AS f;
        IF true = ANY (p_holds_back) THEN
            WITH rested AS (
                UPDATE {schema}.instance_locks AS l SET lock_token = ''
                FROM unnest(p_member, p_instance, p_secret, p_holds_back) AS m (member, instance_id, secret, holds_back)
                WHERE m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                RETURNING m.member, l.covers
            )
            SELECT array_agg(r.member), v_partial || array_agg(r.member) FILTER (WHERE r.covers IS NOT NULL),
                   v_covers || array_agg(r.covers::text) FILTER (WHERE r.covers IS NOT NULL)
            INTO v_rested, v_partial, v_covers FROM rested AS r;
            v_members := v_members || v_rested;
        END IF;
        v_now := {schema}.now_ms();
        IF v_rested IS NOT NULL THEN
            UPDATE {schema}.instance_locks AS l SET locked_until = v_now + m.delay, covers = NULL
            FROM unnest(p_member, p_instance, p_delay) AS m (member, instance_id, delay)
            WHERE m.member = ANY (v_rested) AND l.instance_id = ANY (ARRAY[m.instance_id]);
        END IF;
        UPDATE {schema}.orchestrator_queue AS q
        SET lock_token = NULL, is_aside = false, visible_at = coalesce(v_now + m.delay, q.visible_at),
            attempt_count = greatest(q.attempt_count - m.ignore::integer, 0)
        FROM unnest(p_member, p_instance, p_secret, p_delay, p_ignore) AS m (member, instance_id, secret, delay, ignore)
        WHERE m.member = ANY (v_members) AND (v_partial IS NULL OR m.member <> ALL (v_partial))
            AND q.instance_id = ANY (ARRAY[m.instance_id]) AND q.lock_token = m.secret;
        IF v_partial IS NOT NULL THEN
            UPDATE {schema}.orchestrator_queue AS q
            SET lock_token = NULL, is_aside = false, visible_at = coalesce(v_now + p_delay[m.member], q.visible_at),
                attempt_count = greatest(q.attempt_count - p_ignore[m.member]::integer, 0)
            FROM unnest(v_partial, v_covers) AS p (member, covers)
            CROSS JOIN LATERAL (SELECT p.member, c.id FROM unnest(p.covers::bigint[]) AS c (id)) AS m
            WHERE q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret[m.member];
        END IF;
        IF v_aside IS NOT NULL THEN
            PERFORM {schema}.keep_places_1(v_aside);
        END IF;
        RETURN QUERY SELECT a.member FROM unnest(v_members) AS a (member);
    END IF;
    IF {KIND_ACTIVITY} = ANY (p_kind) THEN
        v_now := {schema}.now_ms();
        RETURN QUERY UPDATE {schema}.worker_queue AS q
        SET lock_token = NULL, locked_until = NULL, visible_at = v_now + coalesce(m.delay, 0),
            delayed = coalesce(m.delay, 0) > 0, attempt_count = greatest(q.attempt_count - m.ignore::integer, 0),
            failures = q.failures + (m.note IS NOT NULL)::integer, last_error = coalesce(m.note, q.last_error)
        FROM unnest(p_member, p_kind, p_activity_row, p_secret, p_delay, p_ignore, p_note)
            AS m (member, kind, id, secret, delay, ignore, note)
        WHERE m.kind = {KIND_ACTIVITY} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING m.member;
    END IF;
END $$;
