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
            RETURNING m.member
        )
        SELECT array_agg(f.member) INTO v_members FROM freed AS f;
        v_wanted := 0;
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
            v_passed[v_one] := true;
            v_turn[v_one] := true;
            v_wanted := v_wanted + (p_messages[v_one] > 0)::integer;
        END LOOP;
        WITH consumed AS (
            DELETE FROM {schema}.orchestrator_queue AS q
            USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance_id, secret)
            WHERE m.kind = {KIND_TURN} AND v_turn[m.member]
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
    END IF;

    v_wanted := cardinality(array_positions(v_turn, true));
    IF v_wanted > 0 THEN
        IF cardinality(array_remove(p_name, NULL)) > 0 THEN
            INSERT INTO {schema}.instances AS i
                (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, created_at, updated_at)
            SELECT m.instance_id, m.name, m.version, m.execution_id, m.parent, v_now, v_now
            FROM unnest(p_member, p_instance, p_name, p_version, p_execution, p_parent)
                AS m (member, instance_id, name, version, execution_id, parent)
            WHERE v_turn[m.member] AND m.name IS NOT NULL AND m.version IS NOT NULL
            ON CONFLICT (instance_id) DO UPDATE
            SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
                current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
                updated_at = excluded.updated_at;
        END IF;
        IF true = ANY (p_raises) THEN
            UPDATE {schema}.instances AS i SET current_execution_id = m.execution_id, updated_at = v_now
            FROM unnest(p_member, p_instance, p_execution, p_raises) AS m (member, instance_id, execution_id, raises)
            WHERE v_turn[m.member] AND m.raises AND i.instance_id = ANY (ARRAY[m.instance_id])
                AND i.current_execution_id < m.execution_id;
            GET DIAGNOSTICS v_count = ROW_COUNT;
            SELECT count(*) - v_count INTO v_count FROM unnest(p_member, p_raises) AS m (member, raises)
            WHERE v_turn[m.member] AND m.raises;
            IF v_count <> 0 THEN
                RAISE EXCEPTION 'raising executions missed % rows', v_count USING ERRCODE = 'OL001';
            END IF;
        END IF;
        -- Executions that are there, and those that begin. A tool may have appended events to one that is not there yet.
        WITH changed AS (
            UPDATE {schema}.executions AS e
            SET status = coalesce(m.status, e.status),
                output = CASE WHEN m.status IS NULL THEN e.output ELSE m.output END,
                completed_at = CASE WHEN m.status IS NULL THEN e.completed_at WHEN m.ended THEN v_now END,
                updated_at = v_now,
                last_event_id = greatest(e.last_event_id, m.last_event),
                terminal_event_id = coalesce(e.terminal_event_id, m.terminal),
                pinned_version = coalesce(m.pin, e.pinned_version),
                pinned_key = coalesce(m.pin_key, e.pinned_key)
            FROM unnest(p_member, p_instance, p_execution, p_status, p_output, p_ended, p_last_event, p_terminal, p_pin, p_pin_key)
                AS m (member, instance_id, execution_id, status, output, ended, last_event, terminal, pin, pin_key)
            WHERE v_turn[m.member] AND e.instance_id = ANY (ARRAY[m.instance_id]) AND e.execution_id = m.execution_id
            RETURNING m.member
        )
        SELECT coalesce(array_agg(c.member), '{}') INTO v_members FROM changed AS c;
        IF cardinality(v_members) < v_wanted THEN
            INSERT INTO {schema}.executions
                (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id, terminal_event_id,
                 pinned_version, pinned_key)
            SELECT m.instance_id, m.execution_id, coalesce(m.status, 'Running'), CASE WHEN m.status IS NOT NULL THEN m.output END,
                   v_now, CASE WHEN m.ended THEN v_now END, v_now,
                   greatest(m.last_event, (SELECT max(h.event_id) FROM {schema}.history AS h
                                           WHERE h.instance_id = m.instance_id AND h.execution_id = m.execution_id)),
                   m.terminal, m.pin, m.pin_key
            FROM unnest(p_member, p_instance, p_execution, p_status, p_output, p_ended, p_last_event, p_terminal, p_pin, p_pin_key)
                AS m (member, instance_id, execution_id, status, output, ended, last_event, terminal, pin, pin_key)
            WHERE v_turn[m.member] AND m.member <> ALL (v_members);
        END IF;
        IF cardinality(h_member) > 0 THEN
            INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
            SELECT p_instance[h.member], p_execution[h.member], h.event_id, h.event_type, h.event_data
            FROM unnest(h_member, h_event, h_type, h_data) AS h (member, event_id, event_type, event_data)
            WHERE v_turn[h.member];
        END IF;
        IF true = ANY (p_sets_status) THEN
            UPDATE {schema}.instances AS i
            SET custom_status = m.custom_status, custom_status_version = i.custom_status_version + 1
            FROM unnest(p_member, p_instance, p_sets_status, p_custom_status) AS m (member, instance_id, sets, custom_status)
            WHERE v_turn[m.member] AND m.sets AND i.instance_id = ANY (ARRAY[m.instance_id]);
        END IF;
        IF true = ANY (p_clears) THEN
            SELECT array_agg(m.instance_id) INTO v_names
            FROM unnest(p_member, p_instance, p_clears) AS m (member, instance_id, clears) WHERE v_turn[m.member] AND m.clears;
            UPDATE {schema}.kv_delta AS d SET value = NULL, last_updated_at_ms = v_now WHERE d.instance_id = ANY (v_names);
            INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
            SELECT s.instance_id, s.key, NULL, v_now FROM {schema}.kv_store AS s WHERE s.instance_id = ANY (v_names)
            ON CONFLICT (instance_id, key) DO NOTHING;
        END IF;
        IF cardinality(k_member) > 0 THEN
            INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
            SELECT p_instance[k.member], k.key, k.value, coalesce(k.at, v_now)
            FROM unnest(k_member, k_key, k_value, k_at) AS k (member, key, value, at)
            WHERE v_turn[k.member]
            ON CONFLICT (instance_id, key) DO UPDATE
            SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
        END IF;
        IF true = ANY (p_ended) THEN
            SELECT array_agg(m.instance_id) INTO v_names
            FROM unnest(p_member, p_instance, p_ended) AS m (member, instance_id, ended)
            WHERE v_turn[m.member] AND m.ended
                AND EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = m.instance_id OFFSET 0);
            IF v_names IS NOT NULL THEN
                INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at_ms)
                SELECT d.instance_id, d.key, d.value, d.last_updated_at_ms FROM {schema}.kv_delta AS d
                WHERE d.instance_id = ANY (v_names) AND d.value IS NOT NULL
                ON CONFLICT (instance_id, key) DO UPDATE
                SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
                DELETE FROM {schema}.kv_store AS s USING {schema}.kv_delta AS d
                WHERE s.instance_id = ANY (v_names) AND d.instance_id = ANY (v_names) AND d.value IS NULL
                    AND s.instance_id = d.instance_id AND s.key = d.key;
                DELETE FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (v_names);
            END IF;
        END IF;
        IF cardinality(a_member) > 0 THEN
            RETURN QUERY
            WITH stored AS (
                INSERT INTO {schema}.worker_queue
                    (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
                SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag,
                       w.secret, CASE WHEN w.secret IS NOT NULL THEN {schema}.now_ms() + w.lock_ms END, (w.secret IS NOT NULL)::integer
                FROM unnest(a_member, a_item, a_instance, a_execution, a_activity, a_session, a_tag, a_secret, a_lock_ms)
                    WITH ORDINALITY
                    AS w (member, item, instance_id, execution_id, activity_id, session_id, tag, secret, lock_ms, n)
                WHERE v_turn[w.member] ORDER BY w.n
                RETURNING worker_queue.id, worker_queue.lock_token, worker_queue.instance_id
            )
            SELECT NULL::integer, NULL::integer, v_now, false, s.id, s.lock_token,
                   i.orchestration_name, coalesce(i.orchestration_version, 'unknown')
            FROM stored AS s
            LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM {schema}.instances AS i
                               WHERE i.instance_id = s.instance_id LIMIT 1) AS i ON true
            WHERE s.lock_token IS NOT NULL;
        END IF;
        IF cardinality(c_member) > 0 THEN
            DELETE FROM {schema}.worker_queue AS q
            USING unnest(c_member, c_instance, c_execution, c_activity) AS c (member, instance_id, execution_id, activity_id)
            WHERE v_turn[c.member] AND q.instance_id = ANY (ARRAY[c.instance_id])
                AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
        END IF;
        IF cardinality(m_member) > 0 THEN
            INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
            SELECT m.instance_id, m.item, greatest(m.not_before, v_now), greatest(m.not_before, v_now), m.begins
            FROM unnest(m_member, m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY
                AS m (member, instance_id, item, not_before, begins, n)
            WHERE v_turn[m.member] ORDER BY m.n;
        END IF;
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
