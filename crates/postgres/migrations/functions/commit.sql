-- Commits turns and completes activities.
--
-- The kind of a member is {KIND_TURN}: a turn under its lease; {KIND_ACTIVITY}: an activity with or without its outcome; or
-- {KIND_AHEAD}: an activity with the turn that its outcome leads to, run ahead. The answer for a member is {COMMIT_REFUSED}: it
-- wrote nothing; {COMMIT_DONE}; or {COMMIT_QUEUED}: the outcome of the activity is stored and waits for a turn, and the turn ahead
-- is not stored. o_more: messages wait for the instance of a turn. Any other failure is an error and undoes the batch.
--
-- A scheduled activity with a secret is stored as leased to a parked fetch (a hand-off): a row without a member has its id. Its
-- lease begins when it is stored, since the transaction may have waited for locks.
CREATE FUNCTION {schema}.commit_1(
    {commit_parameters}
) RETURNS TABLE (
    o_member integer, o_answer integer, o_at bigint, o_more boolean, o_id bigint, o_secret bytea, o_name text, o_version text
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now      bigint := {schema}.now_ms();
    v_seen     bigint;
    v_none     boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_passed   boolean[] := v_none;
    -- The members whose turn is written.
    v_turn     boolean[] := v_none;
    v_members  integer[];
    v_sessions text[];
    v_names    text[];
    v_count    integer;
    v_wanted   integer;
    v_one      integer;
    -- Members whose lease names its messages, and these; members whose instance may have messages that are set aside.
    v_partial  integer[];
    v_covers   text[];
    v_aside    integer[];
    v_covered  text;
BEGIN
    -- Activities: each is fenced by its row.
    IF {KIND_ACTIVITY} = ANY (p_kind) OR {KIND_AHEAD} = ANY (p_kind) THEN
        WITH done AS (
            DELETE FROM {schema}.worker_queue AS q
            USING unnest(p_member, p_kind, p_activity_row, p_secret) AS m (member, kind, id, secret)
            WHERE m.kind <> {KIND_TURN} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
                AND q.locked_until > {schema}.now_ms()
            RETURNING m.member, q.session_id
        )
        SELECT array_agg(d.member), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL)
        INTO v_members, v_sessions FROM done AS d;
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_passed[v_one] := true; END LOOP;
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.touch_sessions_1(v_sessions);
        END IF;
    END IF;
    -- Turns that were run ahead are stored if the instance has no lease and no visible message. The row lock keeps fetches of the
    -- instance out, which lock the same row after they have taken their lease: the statements below see that lease.
    IF {KIND_AHEAD} = ANY (p_kind) THEN
        PERFORM 1 FROM {schema}.executions AS e
        JOIN unnest(p_member, p_kind, p_instance, p_execution) AS m (member, kind, instance_id, execution_id)
            ON m.kind = {KIND_AHEAD} AND e.instance_id = ANY (ARRAY[m.instance_id]) AND e.execution_id = m.execution_id
        WHERE v_passed[m.member]
        ORDER BY m.instance_id COLLATE "C" FOR UPDATE OF e;
        v_now := {schema}.now_ms();
        SELECT array_agg(u.member) INTO v_members FROM (
            SELECT DISTINCT ON (m.instance_id) m.member
            FROM unnest(p_member, p_kind, p_instance, p_execution, p_after, p_ran_at)
                AS m (member, kind, instance_id, execution_id, after, ran_at)
            JOIN {schema}.instances AS i
                ON i.instance_id = ANY (ARRAY[m.instance_id]) AND i.current_execution_id = ANY (ARRAY[m.execution_id])
            JOIN {schema}.executions AS e
                ON e.instance_id = ANY (ARRAY[m.instance_id]) AND e.execution_id = m.execution_id
            WHERE m.kind = {KIND_AHEAD} AND v_passed[m.member] AND m.ran_at BETWEEN v_now - 60000 AND v_now
                AND e.status = 'Running' AND e.last_event_id = m.after
                AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = m.instance_id OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                WHERE q.instance_id = m.instance_id AND q.visible_at <= v_now OFFSET 0)
            ORDER BY m.instance_id, m.member
        ) AS u;
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_turn[v_one] := true; END LOOP;
    END IF;
    -- Turns under a lease: each is fenced by it. After the turns ahead, which must see these leases.
    IF {KIND_TURN} = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM {schema}.instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance_id, secret)
            WHERE m.kind = {KIND_TURN} AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                AND l.locked_until > {schema}.now_ms()
            RETURNING m.member, l.has_aside, l.covers
        )
        SELECT array_agg(f.member), array_agg(f.member) FILTER (WHERE f.covers IS NOT NULL),
               array_agg(f.covers::text) FILTER (WHERE f.covers IS NOT NULL), array_agg(f.member) FILTER (WHERE f.has_aside)
        INTO v_members, v_partial, v_covers, v_aside FROM freed AS f;
        v_wanted := 0;
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
            v_passed[v_one] := true;
            v_turn[v_one] := true;
            v_wanted := v_wanted + (p_messages[v_one] > 0 AND (v_partial IS NULL OR v_one <> ALL (v_partial)))::integer;
        END LOOP;
        WITH consumed AS (
            DELETE FROM {schema}.orchestrator_queue AS q
            USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance_id, secret)
            WHERE m.kind = {KIND_TURN} AND v_turn[m.member] AND (v_partial IS NULL OR m.member <> ALL (v_partial))
                AND q.instance_id = ANY (ARRAY[m.instance_id]) AND q.lock_token = m.secret
            RETURNING m.member
        )
        -- Turns whose messages are not those that they fetched, and turns that have lost all of them.
        SELECT count(*) FILTER (WHERE t.messages <> p_messages[t.member])
               + v_wanted - count(*) FILTER (WHERE p_messages[t.member] > 0)
        INTO v_count FROM (SELECT c.member, count(*) AS messages FROM consumed AS c GROUP BY c.member) AS t;
        IF v_count <> 0 THEN
            RAISE EXCEPTION 'consuming messages: % turns have other messages than they fetched', v_count USING ERRCODE = 'OL001';
        END IF;
        FOR v_one, v_covered IN SELECT p.member, p.covers FROM unnest(v_partial, v_covers) AS p (member, covers) LOOP
            DELETE FROM {schema}.orchestrator_queue AS q
            WHERE q.id = ANY (v_covered::bigint[]) AND q.lock_token = p_secret[v_one];
            GET DIAGNOSTICS v_count = ROW_COUNT;
            IF v_count <> p_messages[v_one] THEN
                RAISE EXCEPTION 'consuming messages: % instead of the % that were fetched', v_count, p_messages[v_one]
                USING ERRCODE = 'OL001';
            END IF;
        END LOOP;
        IF v_aside IS NOT NULL THEN
            PERFORM {schema}.keep_places_1(ARRAY(SELECT p_instance[a.member] FROM unnest(v_aside) AS a (member)));
        END IF;
    END IF;

    v_wanted := cardinality(array_positions(v_turn, true));
    IF v_wanted > 0 THEN
        {turn_writes_of_batch}
    END IF;

    -- Outcomes that are stored without a turn.
    IF cardinality(array_positions(v_passed, true)) > v_wanted THEN
        INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
        SELECT m.instance_id, m.completion, v_now, v_now, false, m.secret
        FROM unnest(p_member, p_kind, p_instance, p_completion, p_secret) AS m (member, kind, instance_id, completion, secret)
        WHERE m.kind <> {KIND_TURN} AND v_passed[m.member] AND NOT v_turn[m.member] AND m.completion IS NOT NULL
        ORDER BY m.member;
    END IF;

    -- Messages that came meanwhile count.
    v_seen := greatest(v_now, {schema}.now_ms());
    RETURN QUERY SELECT m.member,
        CASE WHEN NOT v_passed[m.member] THEN {COMMIT_REFUSED}
             WHEN m.kind = {KIND_AHEAD} AND NOT v_turn[m.member] THEN {COMMIT_QUEUED} ELSE {COMMIT_DONE} END, v_now,
        m.kind <> {KIND_ACTIVITY} AND EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                WHERE q.instance_id = m.instance_id AND q.visible_at <= v_seen OFFSET 0),
        NULL::bigint, NULL::bytea, NULL::text, NULL::text
    FROM unnest(p_member, p_kind, p_instance) AS m (member, kind, instance_id);
END $$;
