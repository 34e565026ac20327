-- A store that Outlast 0.2.0 wrote: `pg_dump --inserts` without its comments and settings.
SET check_function_bodies = false;
CREATE SCHEMA frozen;

CREATE FUNCTION frozen.abandon_1(p_member integer[], p_kind integer[], p_instance text[], p_activity_row bigint[], p_secret bytea[], p_delay bigint[], p_ignore boolean[], p_holds_back boolean[], p_note text[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
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
    IF 0 = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM "frozen".instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret, p_holds_back) AS m (member, kind, instance_id, secret, holds_back)
            WHERE m.kind = 0 AND NOT m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
            RETURNING m.member, m.instance_id, l.has_aside, l.covers
        )
        SELECT array_agg(f.member), array_agg(f.member) FILTER (WHERE f.covers IS NOT NULL),
               array_agg(f.covers::text) FILTER (WHERE f.covers IS NOT NULL), array_agg(f.instance_id) FILTER (WHERE f.has_aside)
        INTO v_members, v_partial, v_covers, v_aside FROM freed AS f;
        IF true = ANY (p_holds_back) THEN
            WITH rested AS (
                UPDATE "frozen".instance_locks AS l SET lock_token = ''
                FROM unnest(p_member, p_instance, p_secret, p_holds_back) AS m (member, instance_id, secret, holds_back)
                WHERE m.holds_back AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                RETURNING m.member, l.covers
            )
            SELECT array_agg(r.member), v_partial || array_agg(r.member) FILTER (WHERE r.covers IS NOT NULL),
                   v_covers || array_agg(r.covers::text) FILTER (WHERE r.covers IS NOT NULL)
            INTO v_rested, v_partial, v_covers FROM rested AS r;
            v_members := v_members || v_rested;
        END IF;
        v_now := "frozen".now_ms();
        IF v_rested IS NOT NULL THEN
            UPDATE "frozen".instance_locks AS l SET locked_until = v_now + m.delay, covers = NULL
            FROM unnest(p_member, p_instance, p_delay) AS m (member, instance_id, delay)
            WHERE m.member = ANY (v_rested) AND l.instance_id = ANY (ARRAY[m.instance_id]);
        END IF;
        UPDATE "frozen".orchestrator_queue AS q
        SET lock_token = NULL, is_aside = false, visible_at = coalesce(v_now + m.delay, q.visible_at),
            attempt_count = greatest(q.attempt_count - m.ignore::integer, 0)
        FROM unnest(p_member, p_instance, p_secret, p_delay, p_ignore) AS m (member, instance_id, secret, delay, ignore)
        WHERE m.member = ANY (v_members) AND (v_partial IS NULL OR m.member <> ALL (v_partial))
            AND q.instance_id = ANY (ARRAY[m.instance_id]) AND q.lock_token = m.secret;
        IF v_partial IS NOT NULL THEN
            UPDATE "frozen".orchestrator_queue AS q
            SET lock_token = NULL, is_aside = false, visible_at = coalesce(v_now + p_delay[m.member], q.visible_at),
                attempt_count = greatest(q.attempt_count - p_ignore[m.member]::integer, 0)
            FROM unnest(v_partial, v_covers) AS p (member, covers)
            CROSS JOIN LATERAL (SELECT p.member, c.id FROM unnest(p.covers::bigint[]) AS c (id)) AS m
            WHERE q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret[m.member];
        END IF;
        IF v_aside IS NOT NULL THEN
            PERFORM "frozen".keep_places_1(v_aside);
        END IF;
        RETURN QUERY SELECT a.member FROM unnest(v_members) AS a (member);
    END IF;
    IF 1 = ANY (p_kind) THEN
        v_now := "frozen".now_ms();
        RETURN QUERY UPDATE "frozen".worker_queue AS q
        SET lock_token = NULL, locked_until = NULL, visible_at = v_now + coalesce(m.delay, 0),
            delayed = coalesce(m.delay, 0) > 0, attempt_count = greatest(q.attempt_count - m.ignore::integer, 0),
            failures = q.failures + (m.note IS NOT NULL)::integer, last_error = coalesce(m.note, q.last_error)
        FROM unnest(p_member, p_kind, p_activity_row, p_secret, p_delay, p_ignore, p_note)
            AS m (member, kind, id, secret, delay, ignore, note)
        WHERE m.kind = 1 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING m.member;
    END IF;
END $$;

CREATE FUNCTION frozen.append_1(p_instance text, p_execution bigint, p_event bigint[], p_type text[], p_data text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance, p_execution, h.event_id, h.event_type, h.event_data
    FROM unnest(p_event, p_type, p_data) AS h (event_id, event_type, event_data);
    UPDATE "frozen".executions AS e
    SET last_event_id = greatest(e.last_event_id, (SELECT max(h.event_id) FROM unnest(p_event) AS h (event_id)))
    WHERE e.instance_id = p_instance AND e.execution_id = p_execution;
END $$;

CREATE FUNCTION frozen.commit_1(p_member integer[], p_kind integer[], p_instance text[], p_secret bytea[], p_activity_row bigint[], p_inputs integer[], p_completion text[], p_after bigint[], p_ran_at bigint[], p_execution bigint[], p_name text[], p_version text[], p_parent text[], p_raises boolean[], p_status text[], p_output text[], p_ended boolean[], p_last_event bigint[], p_terminal bigint[], p_pin text[], p_pin_key text[], p_sets_status boolean[], p_custom_status text[], p_clears boolean[], h_member integer[], h_event bigint[], h_type text[], h_data text[], a_member integer[], a_item text[], a_instance text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[], a_secret bytea[], a_lock_ms bigint[], c_member integer[], c_instance text[], c_execution bigint[], c_activity bigint[], m_member integer[], m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[], k_member integer[], k_key text[], k_value text[], k_at bigint[], f_member integer[], f_row bigint[], f_secret bytea[]) RETURNS TABLE(o_member integer, o_answer integer, o_at bigint, o_more boolean, o_id bigint, o_secret bytea, o_name text, o_version text, o_custom_status text, o_custom_version bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now      bigint := "frozen".now_ms();
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
    -- Members whose lease names its messages, and these; instances that may have messages that are set aside.
    v_partial  integer[];
    v_covers   text[];
    v_aside    text[];
    v_covered  text;
    v_found    integer;
BEGIN
    -- The body of commit_1, for its members, and of commit_alone_1, for its only member.
-- Activities: each is fenced by its row.
IF 1 = ANY (p_kind) OR 2 = ANY (p_kind) THEN
    WITH done AS (
    DELETE FROM "frozen".worker_queue AS q
    USING unnest(p_member, p_kind, p_activity_row, p_secret) AS m (member, kind, activity_row, secret)
    WHERE m.kind IN (1, 2) AND q.id = ANY (ARRAY[m.activity_row]) AND q.lock_token = m.secret
        AND q.locked_until > "frozen".now_ms()
    RETURNING m.member, q.session_id
    )
    SELECT array_agg(d.member), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL)
    INTO v_members, v_sessions FROM done AS d;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_passed[v_one] := true; END LOOP;
    
    IF v_sessions IS NOT NULL THEN
        PERFORM "frozen".touch_sessions_1(v_sessions);
    END IF;
END IF;
-- Turns that were run ahead are stored if the instance has no lease and no visible message. The row lock keeps fetches of the
-- instance out, which lock the same row after they have taken their lease: the statements below see that lease.
IF 2 = ANY (p_kind) OR 4 = ANY (p_kind) THEN
    PERFORM 1 FROM "frozen".executions AS e
    CROSS JOIN unnest(p_member, p_instance, p_execution, p_kind) AS m (member, instance, execution, kind)
    WHERE e.instance_id = ANY (ARRAY[m.instance]) AND e.execution_id = m.execution
    AND (m.kind = 2 AND v_passed[m.member] OR m.kind = 4) ORDER BY m.instance COLLATE "C" FOR UPDATE OF e;
    v_now := "frozen".now_ms();
    -- Fused outcomes write nothing unless all their leases are held, so no lease ends before all are known.
    IF cardinality(f_member) > 0 THEN
        SELECT array_agg(t.member) INTO v_members FROM (
        SELECT f.member, count(*) AS held
        FROM unnest(f_member, f_row, f_secret) AS f (member, id, secret)
        WHERE EXISTS (SELECT 1 FROM "frozen".worker_queue AS q
                      WHERE q.id = f.id AND q.lock_token = f.secret AND q.locked_until > v_now OFFSET 0)
        GROUP BY f.member) AS t WHERE t.held = p_inputs[t.member];
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_passed[v_one] := true; END LOOP;
    END IF;
    SELECT array_agg(u.member) INTO v_members FROM (
    SELECT DISTINCT ON (m.instance) m.member FROM unnest(p_member, p_instance, p_kind, p_ran_at, p_execution, p_after) AS m (member, instance, kind, ran_at, execution, after) WHERE m.kind IN (2, 4) AND v_passed[m.member] AND
        m.ran_at BETWEEN v_now - 60000 AND v_now
        AND EXISTS (SELECT 1 FROM "frozen".instances AS i
                    WHERE i.instance_id = m.instance AND i.current_execution_id = m.execution OFFSET 0)
        AND EXISTS (SELECT 1 FROM "frozen".executions AS e
                    WHERE e.instance_id = m.instance AND e.execution_id = m.execution AND e.status = 'Running'
                        AND e.last_event_id = m.after OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = m.instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                        WHERE q.instance_id = m.instance AND q.visible_at <= v_now OFFSET 0)
    ORDER BY m.instance, m.member) AS u;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_turn[v_one] := true; END LOOP;
    
    -- Each activity of fused outcomes is fenced by its row. A lease that has ended since it was seen above is a conflict: the outcomes are
    -- sent again, and refused.
    IF cardinality(f_member) > 0 THEN
        WITH done AS (
            DELETE FROM "frozen".worker_queue AS q
            USING unnest(f_member, f_row, f_secret) AS f (member, id, secret)
            WHERE v_turn[f.member] AND q.id = ANY (ARRAY[f.id]) AND q.lock_token = f.secret AND q.locked_until > "frozen".now_ms()
            RETURNING q.session_id
        )
        SELECT count(*), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL) INTO v_count, v_sessions FROM done AS d;
        IF v_count <> (SELECT count(*) FROM unnest(f_member) AS f (member) WHERE v_turn[f.member]) THEN
            RAISE EXCEPTION 'a lease of fused outcomes has just ended' USING ERRCODE = 'serialization_failure';
        END IF;
        IF v_sessions IS NOT NULL THEN
            PERFORM "frozen".touch_sessions_1(v_sessions);
        END IF;
    END IF;
END IF;
-- Starts: the first turn is stored if the store knows nothing of the instance. The first lock keeps fetches and hand-offs of the
-- instance out, and the second one keeps other starts out. A start that does not get both is refused, so that no start waits for a
-- lock. The check is a statement of its own: it sees all that was stored before the locks were taken.
IF 3 = ANY (p_kind) THEN
    SELECT array_agg(u.member) INTO v_members FROM (
    SELECT DISTINCT ON (m.instance) m.member, m.instance AS instance_id FROM unnest(p_member, p_instance, p_kind) AS m (member, instance, kind) WHERE m.kind = 3
    ORDER BY m.instance, m.member) AS u
    WHERE pg_try_advisory_xact_lock(hashtextextended(u.instance_id, 4155176175319800712))
        AND pg_try_advisory_xact_lock(hashtextextended(u.instance_id, 4155176175319800712 + 1));
    
    v_now := "frozen".now_ms();
    SELECT array_agg(m.member) INTO v_members FROM unnest(p_member, p_after, p_ran_at, p_instance) AS m (member, after, ran_at, instance) WHERE m.member = ANY (v_members) AND
        m.after = 0 AND m.ran_at BETWEEN v_now - 60000 AND v_now
        AND NOT EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = m.instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = m.instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = m.instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = m.instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".history AS h
                        WHERE h.instance_id = m.instance AND h.execution_id = 1 OFFSET 0);
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
        v_turn[v_one] := true;
        v_passed[v_one] := true;
    END LOOP;
    
END IF;
-- Turns under a lease: each is fenced by it. After the turns ahead and the starts, which must see these leases.
IF 0 = ANY (p_kind) THEN
    WITH freed AS (
    DELETE FROM "frozen".instance_locks AS l
    USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance, secret)
    WHERE m.kind = 0 AND l.instance_id = ANY (ARRAY[m.instance]) AND l.lock_token = m.secret
        AND l.locked_until > "frozen".now_ms()
    RETURNING m.member, l.has_aside, l.covers
    )
    SELECT array_agg(f.member), array_agg(f.member) FILTER (WHERE f.covers IS NOT NULL),
           array_agg(f.covers::text) FILTER (WHERE f.covers IS NOT NULL), array_agg(p_instance[f.member]) FILTER (WHERE f.has_aside)
    INTO v_members, v_partial, v_covers, v_aside FROM freed AS f;
    v_wanted := 0;
    FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP
        v_passed[v_one] := true;
        v_turn[v_one] := true;
        v_wanted := v_wanted + (p_inputs[v_one] > 0 AND (v_partial IS NULL OR v_one <> ALL (v_partial)))::integer;
    END LOOP;
    WITH consumed AS (
        DELETE FROM "frozen".orchestrator_queue AS q
        USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance, secret)
        WHERE m.kind = 0 AND v_turn[m.member] AND (v_partial IS NULL OR m.member <> ALL (v_partial))
            AND q.instance_id = ANY (ARRAY[m.instance]) AND q.lock_token = m.secret
        RETURNING m.member
    )
    -- Turns whose messages are not those that they fetched, and turns that have lost all of them.
    SELECT count(*) FILTER (WHERE t.messages <> p_inputs[t.member])
           + v_wanted - count(*) FILTER (WHERE p_inputs[t.member] > 0)
    INTO v_count FROM (SELECT c.member, count(*) AS messages FROM consumed AS c GROUP BY c.member) AS t;
    -- Partial turns, whose leases name their messages.
    FOR v_one, v_covered IN SELECT p.member, p.covers FROM unnest(v_partial, v_covers) AS p (member, covers) LOOP
        DELETE FROM "frozen".orchestrator_queue AS q WHERE q.id = ANY (v_covered::bigint[]) AND q.lock_token = p_secret[v_one];
        GET DIAGNOSTICS v_found = ROW_COUNT;
        v_count := v_count + (v_found <> p_inputs[v_one])::integer;
    END LOOP;
    
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'consuming messages: % turns have other messages than they fetched', v_count USING ERRCODE = 'OL001';
    END IF;
    IF v_aside IS NOT NULL THEN
        PERFORM "frozen".keep_places_1(v_aside);
    END IF;
END IF;

v_wanted := cardinality(array_positions(v_turn, true));
IF v_wanted > 0 THEN
    -- The writes of a turn, as a part of commit_body.sql: for the members of commit_1 whose turn is written, and for the one of commit_alone_1.
IF cardinality(array_remove(p_name, NULL)) > 0 THEN
    INSERT INTO "frozen".instances AS i
        (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, created_at, updated_at)
    SELECT m.instance, m.name, m.version, m.execution, m.parent, v_now, v_now
    FROM unnest(p_member, p_instance, p_name, p_version, p_execution, p_parent) AS m (member, instance, name, version, execution, parent)
    WHERE v_turn[m.member] AND m.name IS NOT NULL AND m.version IS NOT NULL
    ON CONFLICT (instance_id) DO UPDATE
    SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
        current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
        updated_at = excluded.updated_at;
END IF;
IF true = ANY (p_raises) THEN
    UPDATE "frozen".instances AS i SET current_execution_id = m.execution, updated_at = v_now
    FROM unnest(p_member, p_execution, p_raises, p_instance) AS m (member, execution, raises, instance)
    WHERE v_turn[m.member] AND m.raises AND i.instance_id = ANY (ARRAY[m.instance]) AND i.current_execution_id < m.execution;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    SELECT count(*) - v_count INTO v_count FROM unnest(p_member, p_raises) AS m (member, raises) WHERE v_turn[m.member] AND m.raises;
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'raising executions missed % rows', v_count USING ERRCODE = 'OL001';
    END IF;
END IF;
-- Executions that are there, and those that begin. A tool may have appended events to one that is not there yet.
-- A lone start has seen that no execution is there, so it updates none.
WITH changed AS (
UPDATE "frozen".executions AS e
SET status = coalesce(m.status, e.status),
    output = CASE WHEN m.status IS NULL THEN e.output ELSE m.output END,
    completed_at = CASE WHEN m.status IS NULL THEN e.completed_at WHEN m.ended THEN v_now END,
    updated_at = v_now,
    last_event_id = greatest(e.last_event_id, m.last_event),
    terminal_event_id = coalesce(e.terminal_event_id, m.terminal),
    pinned_version = coalesce(m.pin, e.pinned_version),
    pinned_key = coalesce(m.pin_key, e.pinned_key)
FROM unnest(p_member, p_status, p_output, p_ended, p_last_event, p_terminal, p_pin, p_pin_key, p_instance, p_execution) AS m (member, status, output, ended, last_event, terminal, pin, pin_key, instance, execution)
WHERE v_turn[m.member] AND e.instance_id = ANY (ARRAY[m.instance]) AND e.execution_id = m.execution
RETURNING m.member)
SELECT coalesce(array_agg(c.member), '{}') INTO v_members FROM changed AS c;

IF cardinality(v_members) < v_wanted THEN
    INSERT INTO "frozen".executions
        (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id, terminal_event_id,
         pinned_version, pinned_key)
    SELECT m.instance, m.execution, coalesce(m.status, 'Running'), CASE WHEN m.status IS NOT NULL THEN m.output END,
           v_now, CASE WHEN m.ended THEN v_now END, v_now,
           greatest(m.last_event, (SELECT max(h.event_id) FROM "frozen".history AS h
                                     WHERE h.instance_id = m.instance AND h.execution_id = m.execution)),
           m.terminal, m.pin, m.pin_key
    FROM unnest(p_member, p_instance, p_execution, p_status, p_output, p_ended, p_last_event, p_terminal, p_pin, p_pin_key) AS m (member, instance, execution, status, output, ended, last_event, terminal, pin, pin_key)
    WHERE v_turn[m.member] AND m.member <> ALL (v_members);
END IF;
IF cardinality(h_member) > 0 THEN
    INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance[h.member], p_execution[h.member], h.event_id, h.event_type, h.event_data
    FROM unnest(h_member, h_event, h_type, h_data) AS h (member, event_id, event_type, event_data)
    WHERE v_turn[h.member];
END IF;
IF true = ANY (p_sets_status) THEN
    UPDATE "frozen".instances AS i
    SET custom_status = m.custom_status, custom_status_version = i.custom_status_version + 1
    FROM unnest(p_member, p_custom_status, p_sets_status, p_instance) AS m (member, custom_status, sets_status, instance)
    WHERE v_turn[m.member] AND m.sets_status AND i.instance_id = ANY (ARRAY[m.instance]);
END IF;
IF true = ANY (p_clears) THEN
    SELECT array_agg(m.instance) INTO v_names FROM unnest(p_member, p_instance, p_clears) AS m (member, instance, clears) WHERE v_turn[m.member] AND m.clears;
    UPDATE "frozen".kv_delta AS d SET value = NULL, last_updated_at_ms = v_now WHERE d.instance_id = ANY (v_names);
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT s.instance_id, s.key, NULL, v_now FROM "frozen".kv_store AS s WHERE s.instance_id = ANY (v_names)
    ON CONFLICT (instance_id, key) DO NOTHING;
END IF;
IF cardinality(k_member) > 0 THEN
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT p_instance[k.member], k.key, k.value, coalesce(k.at, v_now)
    FROM unnest(k_member, k_key, k_value, k_at) AS k (member, key, value, at)
    WHERE v_turn[k.member]
    ON CONFLICT (instance_id, key) DO UPDATE
    SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
END IF;
IF true = ANY (p_ended)
     THEN
    SELECT array_agg(m.instance) INTO v_names FROM unnest(p_member, p_instance, p_ended) AS m (member, instance, ended)
    WHERE v_turn[m.member] AND m.ended
        AND EXISTS (SELECT 1 FROM "frozen".kv_delta AS d WHERE d.instance_id = m.instance OFFSET 0);
    IF v_names IS NOT NULL THEN
        INSERT INTO "frozen".kv_store (instance_id, key, value, last_updated_at_ms)
        SELECT d.instance_id, d.key, d.value, d.last_updated_at_ms FROM "frozen".kv_delta AS d
        WHERE d.instance_id = ANY (v_names) AND d.value IS NOT NULL
        ON CONFLICT (instance_id, key) DO UPDATE
        SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
        DELETE FROM "frozen".kv_store AS s USING "frozen".kv_delta AS d
        WHERE s.instance_id = ANY (v_names) AND d.instance_id = ANY (v_names) AND d.value IS NULL
            AND s.instance_id = d.instance_id AND s.key = d.key;
        DELETE FROM "frozen".kv_delta AS d WHERE d.instance_id = ANY (v_names);
    END IF;
END IF;
IF cardinality(a_member) > 0 THEN
    
    RETURN QUERY
    WITH stored AS (
        INSERT INTO "frozen".worker_queue
            (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
        SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag,
               w.secret, CASE WHEN w.secret IS NOT NULL THEN "frozen".now_ms() + w.lock_ms END, (w.secret IS NOT NULL)::integer
        FROM unnest(a_member, a_item, a_instance, a_execution, a_activity, a_session, a_tag, a_secret, a_lock_ms)
            WITH ORDINALITY
            AS w (member, item, instance_id, execution_id, activity_id, session_id, tag, secret, lock_ms, n)
        WHERE v_turn[w.member] ORDER BY w.n
        RETURNING worker_queue.id, worker_queue.lock_token, worker_queue.instance_id
    )
    SELECT NULL::integer, NULL::integer, v_now, false, s.id, s.lock_token,
           i.orchestration_name, coalesce(i.orchestration_version, 'unknown'), NULL::text, NULL::bigint
    FROM stored AS s
    LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM "frozen".instances AS i
                       WHERE i.instance_id = s.instance_id LIMIT 1) AS i ON true
    WHERE s.lock_token IS NOT NULL;
END IF;
IF cardinality(c_member) > 0 THEN
    DELETE FROM "frozen".worker_queue AS q
    USING unnest(c_member, c_instance, c_execution, c_activity) AS c (member, instance_id, execution_id, activity_id)
    WHERE v_turn[c.member] AND q.instance_id = ANY (ARRAY[c.instance_id])
        AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
END IF;
IF cardinality(m_member) > 0 THEN
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT q.instance_id, q.item, greatest(q.not_before, v_now), greatest(q.not_before, v_now), q.begins
    FROM unnest(m_member, m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY
        AS q (member, instance_id, item, not_before, begins, n)
    WHERE v_turn[q.member] ORDER BY q.n;
END IF;

END IF;
-- Outcomes that are stored without a turn.
IF cardinality(array_positions(v_passed, true)) > v_wanted THEN
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
    SELECT m.instance, m.completion, v_now, v_now, false, nullif(m.secret, '')
    FROM unnest(p_member, p_instance, p_completion, p_secret, p_kind) AS m (member, instance, completion, secret, kind)
    WHERE m.completion IS NOT NULL AND m.kind <> 0 AND v_passed[m.member] AND NOT v_turn[m.member] ORDER BY m.member;
END IF;

-- Messages that came meanwhile count. A turn ahead has seen that there are none after it has locked its execution; since then every
-- fetch sees them, because the turn has no lease.
v_seen := greatest(v_now, "frozen".now_ms());
RETURN QUERY SELECT m.member,
    CASE WHEN NOT v_passed[m.member] OR m.kind = 4 AND NOT v_turn[m.member] THEN 0
         WHEN m.kind = 2 AND NOT v_turn[m.member] THEN 2 ELSE 1 END, v_now,
    m.kind <> 1 AND EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                                            WHERE q.instance_id = m.instance AND q.visible_at <= v_seen OFFSET 0),
    NULL::bigint, NULL::bytea, NULL::text, NULL::text, NULL::text, NULL::bigint
FROM unnest(p_member, p_kind, p_instance) AS m (member, kind, instance);

END $$;

CREATE FUNCTION frozen.commit_alone_1(p_member integer[], p_kind integer[], p_instance text[], p_secret bytea[], p_activity_row bigint[], p_inputs integer[], p_completion text[], p_after bigint[], p_ran_at bigint[], p_execution bigint[], p_name text[], p_version text[], p_parent text[], p_raises boolean[], p_status text[], p_output text[], p_ended boolean[], p_last_event bigint[], p_terminal bigint[], p_pin text[], p_pin_key text[], p_sets_status boolean[], p_custom_status text[], p_clears boolean[], h_member integer[], h_event bigint[], h_type text[], h_data text[], a_member integer[], a_item text[], a_instance text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[], a_secret bytea[], a_lock_ms bigint[], c_member integer[], c_instance text[], c_execution bigint[], c_activity bigint[], m_member integer[], m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[], k_member integer[], k_key text[], k_value text[], k_at bigint[], f_member integer[], f_row bigint[], f_secret bytea[], p_is_transaction boolean, p_lock_ms bigint, p_limit_ms bigint, OUT o_member integer, OUT o_answer integer, OUT o_at bigint, OUT o_more boolean, OUT o_id bigint, OUT o_secret bytea, OUT o_name text, OUT o_version text, OUT o_custom_status text, OUT o_custom_version bigint) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now       bigint := "frozen".now_ms();
    v_kind      integer := p_kind[1];
    v_instance  text := p_instance[1];
    v_secret    bytea := p_secret[1];
    v_execution bigint := p_execution[1];
    v_status    text := p_status[1];
    v_name      text := p_name[1];
    v_version   text := p_version[1];
    v_ended     boolean := p_ended[1];
    v_passed    boolean := false;
    v_turn      boolean := false;
    v_seen      bigint;
    v_sessions  text[];
    v_names     text[];
    v_count     integer;
    v_aside     text[];
    v_covers    bigint[];
    v_begins    boolean;
    -- The result of set_config, which nothing reads: an assignment takes less time than PERFORM.
    v_set       text;
BEGIN
    IF p_is_transaction THEN
        -- A standby refuses the first write with its own error, by which the client looks for the primary.
        IF current_setting('transaction_isolation') <> 'read committed'
            OR current_setting('transaction_read_only') = 'on' AND NOT pg_is_in_recovery() THEN
            RAISE EXCEPTION 'transactions of this session begin as % and read only is %',
                current_setting('transaction_isolation'), current_setting('transaction_read_only') USING ERRCODE = 'OL002';
        END IF;
        IF p_lock_ms IS NOT NULL THEN
            v_set := set_config('lock_timeout', p_lock_ms::text, true);
        END IF;
    END IF;
    -- The body of commit_1, for its members, and of commit_alone_1, for its only member.
-- Activities: each is fenced by its row.
IF v_kind IN (1, 2) THEN
    
    DELETE FROM "frozen".worker_queue AS q
    
    WHERE q.id = p_activity_row[1] AND q.lock_token = v_secret
        AND q.locked_until > "frozen".now_ms()
    RETURNING 
    CASE WHEN q.session_id IS NOT NULL THEN ARRAY[q.session_id] END INTO v_sessions;
    v_passed := FOUND;
    IF v_sessions IS NOT NULL THEN
        PERFORM "frozen".touch_sessions_1(v_sessions);
    END IF;
END IF;
-- Turns that were run ahead are stored if the instance has no lease and no visible message. The row lock keeps fetches of the
-- instance out, which lock the same row after they have taken their lease: the statements below see that lease.
IF v_passed AND v_kind = 2 OR v_kind = 4 THEN
    SELECT e.status = 'Running' AND e.last_event_id = p_after[1] INTO v_turn FROM "frozen".executions AS e
    
    WHERE e.instance_id = v_instance AND e.execution_id = v_execution
     FOR UPDATE OF e;
    v_now := "frozen".now_ms();
    -- Fused outcomes write nothing unless all their leases are held, so no lease ends before all are known.
    IF cardinality(f_member) > 0 THEN
        SELECT count(*) = p_inputs[1] INTO v_passed
        FROM unnest(f_member, f_row, f_secret) AS f (member, id, secret)
        WHERE EXISTS (SELECT 1 FROM "frozen".worker_queue AS q
                      WHERE q.id = f.id AND q.lock_token = f.secret AND q.locked_until > v_now OFFSET 0)
        ;
    END IF;
    
    v_turn := coalesce(v_turn AND v_passed AND p_ran_at[1] BETWEEN v_now - 60000 AND v_now, false);
    IF v_turn THEN
        SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version FROM "frozen".instances AS i
        WHERE i.instance_id = v_instance AND i.current_execution_id = v_execution
            AND NOT EXISTS (SELECT 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = v_instance OFFSET 0)
            AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                            WHERE q.instance_id = v_instance AND q.visible_at <= v_now OFFSET 0);
        v_turn := FOUND;
    END IF;
    -- Each activity of fused outcomes is fenced by its row. A lease that has ended since it was seen above is a conflict: the outcomes are
    -- sent again, and refused.
    IF v_turn AND cardinality(f_member) > 0 THEN
        WITH done AS (
            DELETE FROM "frozen".worker_queue AS q
            USING unnest(f_member, f_row, f_secret) AS f (member, id, secret)
            WHERE true AND q.id = ANY (ARRAY[f.id]) AND q.lock_token = f.secret AND q.locked_until > "frozen".now_ms()
            RETURNING q.session_id
        )
        SELECT count(*), array_agg(d.session_id) FILTER (WHERE d.session_id IS NOT NULL) INTO v_count, v_sessions FROM done AS d;
        IF v_count <> (SELECT count(*) FROM unnest(f_member) AS f (member) WHERE true) THEN
            RAISE EXCEPTION 'a lease of fused outcomes has just ended' USING ERRCODE = 'serialization_failure';
        END IF;
        IF v_sessions IS NOT NULL THEN
            PERFORM "frozen".touch_sessions_1(v_sessions);
        END IF;
    END IF;
END IF;
-- Starts: the first turn is stored if the store knows nothing of the instance. The first lock keeps fetches and hand-offs of the
-- instance out, and the second one keeps other starts out. A start that does not get both is refused, so that no start waits for a
-- lock. The check is a statement of its own: it sees all that was stored before the locks were taken.
IF v_kind = 3 THEN
    
    v_turn := pg_try_advisory_xact_lock(hashtextextended(v_instance, 4155176175319800712))
        AND pg_try_advisory_xact_lock(hashtextextended(v_instance, 4155176175319800712 + 1));
    v_now := "frozen".now_ms();
    v_turn := v_turn AND
        p_after[1] = 0 AND p_ran_at[1] BETWEEN v_now - 60000 AND v_now
        AND NOT EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = v_instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = v_instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = v_instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = v_instance OFFSET 0)
        AND NOT EXISTS (SELECT 1 FROM "frozen".history AS h
                        WHERE h.instance_id = v_instance AND h.execution_id = 1 OFFSET 0);
    
    v_passed := v_turn;
END IF;
-- Turns under a lease: each is fenced by it. After the turns ahead and the starts, which must see these leases.
IF v_kind = 0 THEN
    
    DELETE FROM "frozen".instance_locks AS l
    
    WHERE l.instance_id = v_instance AND l.lock_token = v_secret
        AND l.locked_until > "frozen".now_ms()
    RETURNING 
    CASE WHEN l.has_aside THEN ARRAY[v_instance] END, l.covers INTO v_aside, v_covers;
    v_passed := FOUND;
    v_turn := v_passed;
    v_count := 0;
    IF v_passed THEN
        IF v_covers IS NULL THEN
            DELETE FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.lock_token = v_secret;
        ELSE
            DELETE FROM "frozen".orchestrator_queue AS q WHERE q.id = ANY (v_covers) AND q.lock_token = v_secret;
        END IF;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_count := (v_count <> p_inputs[1])::integer;
    END IF;
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'consuming messages: % turns have other messages than they fetched', v_count USING ERRCODE = 'OL001';
    END IF;
    IF v_aside IS NOT NULL THEN
        PERFORM "frozen".keep_places_1(v_aside);
    END IF;
END IF;

IF v_turn THEN
    -- The writes of a turn, as a part of commit_body.sql: for the members of commit_1 whose turn is written, and for the one of commit_alone_1.
IF v_name IS NOT NULL THEN
    INSERT INTO "frozen".instances AS i
        (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, created_at, updated_at)
    SELECT v_instance, v_name, v_version, v_execution, p_parent[1], v_now, v_now
    
    WHERE true AND v_name IS NOT NULL AND v_version IS NOT NULL
    ON CONFLICT (instance_id) DO UPDATE
    SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
        current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
        updated_at = excluded.updated_at;
END IF;
IF true = ANY (p_raises) THEN
    UPDATE "frozen".instances AS i SET current_execution_id = v_execution, updated_at = v_now
    
    WHERE true AND p_raises[1] AND i.instance_id = v_instance AND i.current_execution_id < v_execution;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    SELECT count(*) - v_count INTO v_count  WHERE true AND p_raises[1];
    IF v_count <> 0 THEN
        RAISE EXCEPTION 'raising executions missed % rows', v_count USING ERRCODE = 'OL001';
    END IF;
END IF;
-- Executions that are there, and those that begin. A tool may have appended events to one that is not there yet.
-- A lone start has seen that no execution is there, so it updates none.
v_begins := v_kind = 3;
IF NOT v_begins THEN
UPDATE "frozen".executions AS e
SET status = coalesce(v_status, e.status),
    output = CASE WHEN v_status IS NULL THEN e.output ELSE p_output[1] END,
    completed_at = CASE WHEN v_status IS NULL THEN e.completed_at WHEN v_ended THEN v_now END,
    updated_at = v_now,
    last_event_id = greatest(e.last_event_id, p_last_event[1]),
    terminal_event_id = coalesce(e.terminal_event_id, p_terminal[1]),
    pinned_version = coalesce(p_pin[1], e.pinned_version),
    pinned_key = coalesce(p_pin_key[1], e.pinned_key)

WHERE true AND e.instance_id = v_instance AND e.execution_id = v_execution
;
v_begins := NOT FOUND;
END IF;
IF v_begins THEN
    INSERT INTO "frozen".executions
        (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id, terminal_event_id,
         pinned_version, pinned_key)
    SELECT v_instance, v_execution, coalesce(v_status, 'Running'), CASE WHEN v_status IS NOT NULL THEN p_output[1] END,
           v_now, CASE WHEN v_ended THEN v_now END, v_now,
           greatest(p_last_event[1], (SELECT max(h.event_id) FROM "frozen".history AS h
                                     WHERE h.instance_id = v_instance AND h.execution_id = v_execution)),
           p_terminal[1], p_pin[1], p_pin_key[1]
    
    WHERE true;
END IF;
IF cardinality(h_member) > 0 THEN
    INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT v_instance, v_execution, h.event_id, h.event_type, h.event_data
    FROM unnest(h_member, h_event, h_type, h_data) AS h (member, event_id, event_type, event_data)
    WHERE true;
END IF;
IF true = ANY (p_sets_status) THEN
    UPDATE "frozen".instances AS i
    SET custom_status = p_custom_status[1], custom_status_version = i.custom_status_version + 1
    
    WHERE true AND p_sets_status[1] AND i.instance_id = v_instance;
END IF;
IF true = ANY (p_clears) THEN
    SELECT array_agg(v_instance) INTO v_names  WHERE true AND p_clears[1];
    UPDATE "frozen".kv_delta AS d SET value = NULL, last_updated_at_ms = v_now WHERE d.instance_id = ANY (v_names);
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT s.instance_id, s.key, NULL, v_now FROM "frozen".kv_store AS s WHERE s.instance_id = ANY (v_names)
    ON CONFLICT (instance_id, key) DO NOTHING;
END IF;
IF cardinality(k_member) > 0 THEN
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT v_instance, k.key, k.value, coalesce(k.at, v_now)
    FROM unnest(k_member, k_key, k_value, k_at) AS k (member, key, value, at)
    WHERE true
    ON CONFLICT (instance_id, key) DO UPDATE
    SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
END IF;
IF 
    v_ended AND EXISTS (SELECT 1 FROM "frozen".kv_delta AS d WHERE d.instance_id = v_instance) THEN
    SELECT array_agg(v_instance) INTO v_names 
    WHERE true AND v_ended
        AND EXISTS (SELECT 1 FROM "frozen".kv_delta AS d WHERE d.instance_id = v_instance OFFSET 0);
    IF v_names IS NOT NULL THEN
        INSERT INTO "frozen".kv_store (instance_id, key, value, last_updated_at_ms)
        SELECT d.instance_id, d.key, d.value, d.last_updated_at_ms FROM "frozen".kv_delta AS d
        WHERE d.instance_id = ANY (v_names) AND d.value IS NOT NULL
        ON CONFLICT (instance_id, key) DO UPDATE
        SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
        DELETE FROM "frozen".kv_store AS s USING "frozen".kv_delta AS d
        WHERE s.instance_id = ANY (v_names) AND d.instance_id = ANY (v_names) AND d.value IS NULL
            AND s.instance_id = d.instance_id AND s.key = d.key;
        DELETE FROM "frozen".kv_delta AS d WHERE d.instance_id = ANY (v_names);
    END IF;
END IF;
IF cardinality(a_member) > 0 THEN
    IF cardinality(a_member) = 1 THEN
        INSERT INTO "frozen".worker_queue
            (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
        VALUES (a_item[1], v_now, a_instance[1], a_execution[1], a_activity[1], a_session[1], a_tag[1], a_secret[1],
                CASE WHEN a_secret[1] IS NOT NULL THEN "frozen".now_ms() + a_lock_ms[1] END, (a_secret[1] IS NOT NULL)::integer)
        RETURNING id, lock_token INTO o_id, o_secret;
        IF o_secret IS NULL THEN
            o_name := NULL;
            o_version := NULL;
        ELSIF v_name IS NOT NULL AND v_version IS NOT NULL THEN
            o_name := v_name;
            o_version := v_version;
        ELSIF o_name IS NULL THEN
            SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version
            FROM "frozen".instances AS i WHERE i.instance_id = a_instance[1];
        END IF;
    ELSE
        INSERT INTO "frozen".worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
        SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
        FROM unnest(a_item, a_instance, a_execution, a_activity, a_session, a_tag) WITH ORDINALITY
            AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
        ORDER BY w.n;
    END IF;
    
END IF;
IF cardinality(c_member) > 0 THEN
    DELETE FROM "frozen".worker_queue AS q
    USING unnest(c_member, c_instance, c_execution, c_activity) AS c (member, instance_id, execution_id, activity_id)
    WHERE true AND q.instance_id = ANY (ARRAY[c.instance_id])
        AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
END IF;
IF cardinality(m_member) > 0 THEN
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT q.instance_id, q.item, greatest(q.not_before, v_now), greatest(q.not_before, v_now), q.begins
    FROM unnest(m_member, m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY
        AS q (member, instance_id, item, not_before, begins, n)
    WHERE true ORDER BY q.n;
END IF;

END IF;
-- Outcomes that are stored without a turn.
IF v_passed AND NOT v_turn THEN
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
    SELECT v_instance, p_completion[1], v_now, v_now, false, nullif(v_secret, '')
    
    WHERE p_completion[1] IS NOT NULL;
END IF;

-- Messages that came meanwhile count. A turn ahead has seen that there are none after it has locked its execution; since then every
-- fetch sees them, because the turn has no lease.
v_seen := greatest(v_now, "frozen".now_ms());

o_member := 1;
o_answer := CASE WHEN NOT v_passed OR v_kind = 4 AND NOT v_turn THEN 0
                 WHEN v_kind = 2 AND NOT v_turn THEN 2 ELSE 1 END;
o_at := v_now;
o_more := false;
IF v_kind <> 1 AND NOT (v_turn AND v_kind IN (2, 4)) THEN
    o_more := EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.visible_at <= v_seen);
END IF;
IF v_turn AND v_ended THEN
    SELECT i.custom_status, i.custom_status_version INTO o_custom_status, o_custom_version
    FROM "frozen".instances AS i WHERE i.instance_id = v_instance;
END IF;
    IF clock_timestamp() > statement_timestamp() + p_limit_ms * interval '1 millisecond' THEN
        RAISE EXCEPTION 'the commit took longer than % ms', p_limit_ms USING ERRCODE = 'query_canceled';
    END IF;
END $$;

CREATE FUNCTION frozen.dead_letter_activities_1(p_ids bigint[], p_secrets bytea[], p_reasons text[]) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    v_count integer;
BEGIN
    WITH gone AS (
        DELETE FROM "frozen".worker_queue AS q USING unnest(p_ids, p_secrets, p_reasons) AS m (id, secret, reason)
        WHERE q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING q.id, q.instance_id, q.work_item, q.attempt_count, m.reason
    )
    INSERT INTO "frozen".dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
    SELECT 'worker', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, "frozen".now_ms() FROM gone AS g ORDER BY g.id;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

CREATE FUNCTION frozen.end_leases_1(p_channel text, p_sender text, p_owner bigint) RETURNS bigint
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
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
    v_now := "frozen".now_ms();
    WITH held AS MATERIALIZED (
        SELECT l.instance_id FROM "frozen".instance_locks AS l
        WHERE l.locked_until > v_now AND substring(l.lock_token FROM 1 FOR 8) = v_name FOR UPDATE SKIP LOCKED
    )
    UPDATE "frozen".instance_locks AS l SET locked_until = v_now
    FROM held AS h WHERE l.instance_id = ANY (ARRAY[h.instance_id]);
    GET DIAGNOSTICS v_turns = ROW_COUNT;
    WITH held AS MATERIALIZED (
        SELECT q.id FROM "frozen".worker_queue AS q
        WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now AND substring(q.lock_token FROM 1 FOR 8) = v_name
        FOR UPDATE SKIP LOCKED
    )
    UPDATE "frozen".worker_queue AS q SET locked_until = v_now
    FROM held AS h WHERE q.id = ANY (ARRAY[h.id]);
    GET DIAGNOSTICS v_activities = ROW_COUNT;
    WITH held AS MATERIALIZED (
        SELECT s.session_id FROM "frozen".sessions AS s
        WHERE s.locked_until > v_now AND s.owner = v_name FOR UPDATE SKIP LOCKED
    )
    UPDATE "frozen".sessions AS s SET locked_until = v_now
    FROM held AS h WHERE s.session_id = ANY (ARRAY[h.session_id]);
    GET DIAGNOSTICS v_sessions = ROW_COUNT;
    IF NOT "frozen".holds_lease_1(p_owner) THEN
        DELETE FROM "frozen".owners AS o WHERE o.owner = p_owner;
        DELETE FROM "frozen".listeners AS l WHERE left(l.id, 16) = encode(v_name, 'hex');
    END IF;
    IF v_turns + v_activities + v_sessions > 0 THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, l.id, l.id, '[]'::jsonb, 0)::text)
        FROM "frozen".listeners AS l WHERE l.id <> p_sender AND l.expires_at > v_now;
    END IF;
    RETURN v_turns + v_activities + v_sessions;
END $$;

CREATE FUNCTION frozen.enqueue_activities_1(p_item text[], p_instance text[], p_execution bigint[], p_activity bigint[], p_session text[], p_tag text[]) RETURNS void
    LANGUAGE sql
    AS $$
    INSERT INTO "frozen".worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT w.item, "frozen".now_ms(), w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
    FROM unnest(p_item, p_instance, p_execution, p_activity, p_session, p_tag) WITH ORDINALITY
        AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
    ORDER BY w.n
$$;

CREATE FUNCTION frozen.enqueue_messages_1(p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_not_before bigint[], p_begins boolean[], p_most bigint[], p_secret bytea[], p_lock_ms bigint[]) RETURNS TABLE(o_member integer, o_visible_at bigint, o_now bigint, o_id bigint, o_secret bytea)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now     bigint;
    v_refused integer[] := '{}';
    v_leased  bytea[] := '{}';
BEGIN
    IF cardinality(array_remove(p_most, NULL)) > 0 THEN
        -- Two transactions that count at once would both find room for the last message.
        PERFORM pg_advisory_xact_lock(hashtextextended(b.instance_id, 4155176175319800712 + 1)) FROM (
            SELECT DISTINCT m.instance_id FROM unnest(p_instance, p_most) AS m (instance_id, most)
            WHERE m.most IS NOT NULL ORDER BY m.instance_id
        ) AS b;
        SELECT coalesce(array_agg(b.member), '{}') INTO v_refused FROM (
            SELECT m.member, m.most, m.instance_id, row_number() OVER (PARTITION BY m.instance_id ORDER BY m.member) AS n
            FROM unnest(p_member, p_instance, p_most) AS m (member, instance_id, most)
        ) AS b
        WHERE b.most IS NOT NULL AND b.n > b.most - (
            SELECT count(*) FROM (SELECT 1 FROM "frozen".orchestrator_queue AS q
                                  WHERE q.instance_id = b.instance_id LIMIT b.most) AS waiting);
    END IF;
    IF cardinality(array_remove(p_secret, NULL)) > 0 THEN
        v_leased := "frozen".lease_new_instances_1(p_instance, p_secret, p_lock_ms);
    END IF;
    v_now := "frozen".now_ms();
    IF cardinality(p_member) = 1 AND cardinality(v_refused) = 0 THEN
        o_member := 1;
        o_visible_at := greatest(v_now + p_delay[1], p_not_before[1]);
        o_now := v_now;
        INSERT INTO "frozen".orchestrator_queue AS q
            (instance_id, work_item, visible_at, available_at, begins, lock_token, attempt_count)
        VALUES (p_instance[1], p_item[1], o_visible_at, o_visible_at, p_begins[1], v_leased[1], cardinality(v_leased))
        RETURNING q.id, q.lock_token INTO o_id, o_secret;
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    WITH stored AS (
        INSERT INTO "frozen".orchestrator_queue AS q
            (instance_id, work_item, visible_at, available_at, begins, lock_token, attempt_count)
        SELECT m.instance_id, m.item, greatest(v_now + m.delay, m.not_before), greatest(v_now + m.delay, m.not_before), m.begins,
               m.secret, (m.secret IS NOT NULL)::integer
        FROM (SELECT m.*, CASE WHEN m.wanted = ANY (v_leased) THEN m.wanted END AS secret
              FROM unnest(p_member, p_instance, p_item, p_delay, p_not_before, p_begins, p_secret)
                  AS m (member, instance_id, item, delay, not_before, begins, wanted)) AS m
        WHERE m.member <> ALL (v_refused) ORDER BY m.member
        RETURNING q.id, q.lock_token
    )
    SELECT NULL::integer, NULL::bigint, v_now, s.id, s.lock_token FROM stored AS s WHERE s.lock_token IS NOT NULL;
    RETURN QUERY SELECT m.member, CASE WHEN m.member <> ALL (v_refused) THEN greatest(v_now + m.delay, m.not_before) END, v_now,
        NULL::bigint, NULL::bytea
    FROM unnest(p_member, p_delay, p_not_before) AS m (member, delay, not_before);
END $$;

CREATE FUNCTION frozen.enqueue_once_1(p_instance text, p_key text, p_item text, p_not_before bigint, p_begins boolean, p_most bigint) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_current bigint;
    v_ended   boolean;
    v_at      bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, 4155176175319800712 + 1));
    SELECT i.current_execution_id INTO v_current FROM "frozen".instances AS i WHERE i.instance_id = p_instance FOR KEY SHARE;
    IF EXISTS (SELECT 1 FROM "frozen".message_keys AS k WHERE k.instance_id = p_instance AND k.key = p_key) THEN
        RETURN 1;
    END IF;
    SELECT e.status IN ('Completed', 'Failed') INTO v_ended FROM "frozen".executions AS e
    WHERE e.instance_id = p_instance AND e.execution_id = v_current;
    IF v_ended THEN
        RETURN 2;
    END IF;
    IF v_current IS NULL
        AND NOT EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = p_instance)
        AND NOT EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
        AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                        WHERE q.instance_id || '' = p_instance AND q.begins AND "frozen".is_item_1(q.work_item)) THEN
        RETURN 3;
    END IF;
    IF p_most <= (SELECT count(*) FROM (SELECT 1 FROM "frozen".orchestrator_queue AS q
                                        WHERE q.instance_id = p_instance LIMIT p_most) AS waiting) THEN
        RETURN 4;
    END IF;
    v_at := greatest("frozen".now_ms(), p_not_before);
    INSERT INTO "frozen".message_keys (instance_id, key, at) VALUES (p_instance, p_key, v_at);
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    VALUES (p_instance, p_item, v_at, v_at, p_begins);
    RETURN 0;
END $$;

CREATE FUNCTION frozen.fetch_activities_1(p_secrets bytea[], p_owners text[], p_session_ms bigint[], p_lock_ms bigint, p_tags text[], p_asks_next boolean) RETURNS TABLE(o_nth integer, o_id bigint, o_item text, o_instance text, o_session text, o_attempts integer, o_name text, o_version text, o_now bigint, o_next bigint, o_secret bytea, o_sessions boolean, o_failures integer, o_last_error text)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now    bigint := "frozen".now_ms();
    v_tags   text[] := p_tags;
    v_wanted integer := cardinality(p_secrets);
    v_ids    bigint[] := '{}';
    v_nths   integer[] := '{}';
    v_free   integer[];
    v_nth    integer;
    v_open   text[];
    v_id     bigint;
    v_row    record;
    v_over   boolean;
    v_owned  boolean;
BEGIN
    v_owned := cardinality(array_remove(p_owners, NULL)) > 0;
    v_over := EXISTS (SELECT 1 FROM "frozen".worker_queue AS q WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now);
    v_owned := v_owned AND (
        EXISTS (SELECT 1 FROM "frozen".worker_queue AS q WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL)
        OR v_over AND EXISTS (SELECT 1 FROM "frozen".worker_queue AS q
                              WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.session_id IS NOT NULL OFFSET 0));
    IF v_tags IS NULL THEN
        -- Every tag of free activities, found by skipping from one to the next.
        WITH RECURSIVE tags (tag) AS (
            (SELECT coalesce('=' || q.tag, '') FROM "frozen".worker_queue AS q
             WHERE q.lock_token IS NULL AND q.session_id IS NULL ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            UNION ALL
            SELECT (SELECT coalesce('=' || q.tag, '') FROM "frozen".worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') > t.tag
                    ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            FROM tags AS t WHERE t.tag IS NOT NULL
        )
        SELECT array_agg(t.tag) INTO v_tags FROM tags AS t WHERE t.tag IS NOT NULL;
    END IF;
    IF v_owned THEN
        -- The holder of a session decides which owners may lease its activities, so activities are compared one by one, oldest first.
        -- Of each session and tag, only as many activities are compared as could be leased.
        SELECT array_agg(s.n ORDER BY s.n) INTO v_free FROM generate_series(1, v_wanted) AS s (n);
        SELECT array_agg(w.o_session) INTO v_open FROM "frozen".waiting_sessions_1() AS w
        WHERE w.o_holder IS NULL OR w.o_holder = ANY (p_owners);
        FOR v_id IN
            SELECT a.id FROM (
                SELECT f.id FROM unnest(v_open) AS o (session_id)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM "frozen".worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = o.session_id AND q.visible_at <= v_now
                        AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    ORDER BY q.id LIMIT v_wanted
                ) AS f
                UNION ALL
                SELECT f.id FROM unnest(v_tags) AS t (tag)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM "frozen".worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
                ) AS f
                UNION ALL
                SELECT q.id FROM "frozen".worker_queue AS q
                LEFT JOIN LATERAL (SELECT s.* FROM "frozen".sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
                WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                    AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    AND (s.session_id IS NULL OR s.locked_until <= v_now OR s.worker_id = ANY (p_owners))
            ) AS a ORDER BY a.id
        LOOP
            EXIT WHEN cardinality(v_free) = 0;
            SELECT q.id, q.session_id, CASE WHEN s.locked_until > v_now THEN s.worker_id END AS holder,
                   q.session_id IS NOT NULL AND "frozen".is_item_1(q.work_item) AS claims
            INTO v_row FROM "frozen".worker_queue AS q
            LEFT JOIN LATERAL (SELECT s.* FROM "frozen".sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
            WHERE q.id = v_id AND (q.lock_token IS NULL OR q.locked_until <= v_now) AND q.visible_at <= v_now
            FOR UPDATE OF q SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            SELECT f.n INTO v_nth FROM unnest(v_free) WITH ORDINALITY AS f (n, place)
            WHERE v_row.session_id IS NULL
                OR (p_owners[f.n] IS NOT NULL AND (v_row.holder IS NULL OR v_row.holder = p_owners[f.n]))
            ORDER BY f.place LIMIT 1;
            CONTINUE WHEN NOT FOUND;
            IF v_row.claims THEN
                INSERT INTO "frozen".sessions AS s (session_id, worker_id, locked_until, last_activity_at, owner)
                VALUES (v_row.session_id, p_owners[v_nth], v_now + p_session_ms[v_nth], v_now,
                        substring(p_secrets[v_nth] FROM 1 FOR 8))
                ON CONFLICT (session_id) DO UPDATE
                SET worker_id = excluded.worker_id, locked_until = excluded.locked_until,
                    last_activity_at = excluded.last_activity_at, owner = excluded.owner
                WHERE s.locked_until <= v_now OR s.worker_id = excluded.worker_id;
                CONTINUE WHEN NOT FOUND;
            END IF;
            v_ids := v_ids || v_row.id;
            v_nths := v_nths || v_nth;
            v_free := array_remove(v_free, v_nth);
        END LOOP;
    ELSIF NOT v_over AND cardinality(v_tags) = 1 THEN
        -- The most common fetch: one tag, and no sessions.
        SELECT coalesce(array_agg(f.id), '{}') INTO v_ids FROM (
            SELECT q.id FROM "frozen".worker_queue AS q
            WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = v_tags[1] AND q.visible_at <= v_now
                AND q.session_id IS NULL
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ) AS f;
        v_nths := (ARRAY(SELECT generate_series(1, cardinality(v_ids))));
    ELSE
        WITH free AS MATERIALIZED (
            SELECT f.id FROM unnest(v_tags) AS t (tag)
            CROSS JOIN LATERAL (
                SELECT q.id FROM "frozen".worker_queue AS q
                WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    AND q.session_id IS NULL
                ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
            ) AS f
        ), over AS MATERIALIZED (
            SELECT q.id FROM "frozen".worker_queue AS q
            WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                AND q.session_id IS NULL AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ), line AS (
            SELECT a.id FROM (SELECT f.id FROM free AS f UNION ALL SELECT o.id FROM over AS o) AS a
            ORDER BY a.id LIMIT v_wanted
        )
        SELECT coalesce(array_agg(n.id ORDER BY n.id), '{}'), coalesce(array_agg(n.nth ORDER BY n.id), '{}')
        INTO v_ids, v_nths FROM (SELECT i.id, (row_number() OVER (ORDER BY i.id))::integer AS nth FROM line AS i) AS n;
    END IF;

    IF cardinality(v_ids) > 0 THEN
        v_now := "frozen".now_ms();
        RETURN QUERY
        WITH leased AS (
            UPDATE "frozen".worker_queue AS q
            SET lock_token = p_secrets[t.nth], locked_until = v_now + p_lock_ms, attempt_count = q.attempt_count + 1,
                delayed = false
            FROM unnest(v_ids, v_nths) AS t (id, nth) WHERE q.id = ANY (ARRAY[t.id])
            RETURNING t.nth, q.id, q.work_item, q.instance_id, q.session_id, q.attempt_count, q.failures, q.last_error
        )
        SELECT l.nth, l.id, l.work_item, l.instance_id::text, l.session_id::text, l.attempt_count,
               i.orchestration_name, coalesce(i.orchestration_version, 'unknown'), v_now, NULL::bigint, p_secrets[l.nth], NULL::boolean,
               l.failures, l.last_error
        FROM leased AS l
        LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM "frozen".instances AS i
                           WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
        ORDER BY l.id;
    END IF;
    IF cardinality(v_ids) < v_wanted THEN
        o_now := v_now;
        o_sessions := EXISTS (SELECT 1 FROM "frozen".worker_queue AS q WHERE q.session_id IS NOT NULL);
        IF p_asks_next THEN
            o_next := least(
                (SELECT min(q.visible_at) FROM "frozen".worker_queue AS q WHERE q.delayed AND q.visible_at > v_now),
                (SELECT min(q.locked_until) FROM "frozen".worker_queue AS q
                 WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now),
                CASE WHEN o_sessions THEN (SELECT min(s.locked_until) FROM "frozen".sessions AS s WHERE s.locked_until > v_now) END);
        END IF;
        RETURN NEXT;
    END IF;
END $$;

CREATE FUNCTION frozen.fetch_turns_1(p_secrets bytea[], p_lock_ms bigint, p_lowest text[], p_highest text[], p_asks_next boolean, p_messages bigint, p_bytes bigint) RETURNS TABLE(o_secret bytea, o_instance text, o_name text, o_version text, o_execution bigint, o_last_event bigint, o_created_at bigint, o_ended boolean, o_has_history boolean, o_start_due bigint, o_now bigint, o_ids bigint[], o_items text[], o_available bigint[], o_attempts integer[], o_next bigint, o_partial boolean, o_left_out_bytes bigint, o_skipped boolean)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now     bigint;
    v_begun   bigint := "frozen".now_ms();
    v_wanted  integer := cardinality(p_secrets);
    v_used    integer := 0;
    v_window  integer := v_wanted + 8;
    v_ready   integer;
    v_skipped integer;
    v_over    integer;
    -- Instances whose lease is over, if there are any: nearly always there are none.
    v_ended    text[];
    v_ended_at bigint[];
    v_ended_id bigint[];
    v_tried   integer;
    v_taken   text[];
    v_claimed text[] := '{}';
    -- Claimed instances whose lease expired in the hands of its holder.
    v_expired text[];
    v_lost    text[] := '{}';
    v_count   integer;
    -- Instances with more messages than a fetch takes, and the messages that it takes; nearly always there are none.
    v_crowded text[];
    v_chosen  bigint[];
    v_plain   text[];
    -- Instances whose texts are left out.
    v_large   text[];
BEGIN
    FOR v_round IN 1..6 LOOP
        v_now := "frozen".now_ms();
        v_over := 0;
        v_ended := NULL;
        v_ended_at := NULL;
        v_ended_id := NULL;
        IF EXISTS (SELECT 1 FROM "frozen".instance_locks AS l WHERE l.locked_until <= v_now) THEN
            SELECT count(*), array_agg(o.instance_id), array_agg(o.visible_at), array_agg(o.id)
            INTO v_over, v_ended, v_ended_at, v_ended_id
            FROM (
                SELECT l.instance_id, m.visible_at, m.id
                FROM "frozen".instance_locks AS l
                CROSS JOIN LATERAL (SELECT q.visible_at, q.id FROM "frozen".orchestrator_queue AS q
                                    WHERE q.instance_id = l.instance_id AND q.visible_at <= v_now
                                    ORDER BY q.visible_at, q.id LIMIT 1) AS m
                LEFT JOIN LATERAL (SELECT i.current_execution_id FROM "frozen".instances AS i
                                   WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
                LEFT JOIN LATERAL (SELECT e.pinned_key FROM "frozen".executions AS e
                                   WHERE e.instance_id = l.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
                WHERE l.locked_until <= v_now
                    AND (p_lowest IS NULL OR e.pinned_key IS NULL OR EXISTS (
                        SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                        WHERE e.pinned_key BETWEEN r.lowest AND r.highest))
                ORDER BY l.locked_until LIMIT v_window
            ) AS o;
        END IF;
        WITH ready AS MATERIALIZED (
            -- Each free instance once, by its first message, and the messages of leased instances. The condition that excludes most rows
            -- comes first.
            SELECT s.instance_id, s.visible_at, s.id, s.is_free
            FROM (SELECT q.instance_id, q.visible_at, q.id, CASE
                      WHEN (SELECT l.locked_until FROM "frozen".instance_locks AS l WHERE l.instance_id = q.instance_id) > v_now
                          THEN false
                      WHEN EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS f
                                   WHERE f.instance_id = q.instance_id AND f.visible_at <= q.visible_at
                                       AND (f.visible_at < q.visible_at OR f.id < q.id) AND coalesce(f.lock_token, '') = '' OFFSET 0)
                          THEN NULL
                      WHEN p_lowest IS NULL THEN true
                      WHEN coalesce((
                          SELECT e.pinned_key IS NULL OR EXISTS (
                              SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                              WHERE e.pinned_key BETWEEN r.lowest AND r.highest)
                          FROM "frozen".instances AS i
                          JOIN "frozen".executions AS e
                              ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
                          WHERE i.instance_id = q.instance_id), true)
                          THEN true END AS is_free
                  FROM "frozen".orchestrator_queue AS q
                  WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_now
                  ORDER BY q.visible_at + 0, q.id OFFSET 0) AS s
            WHERE s.is_free IS NOT NULL LIMIT v_window
        ), line AS MATERIALIZED (
            SELECT a.instance_id
            FROM (SELECT r.instance_id, r.visible_at, r.id FROM ready AS r
                  WHERE r.is_free AND (v_ended IS NULL OR r.instance_id <> ALL (v_ended))
                  UNION ALL SELECT o.* FROM unnest(v_ended, v_ended_at, v_ended_id) AS o) AS a (instance_id, visible_at, id)
            ORDER BY a.visible_at, a.id
        ), free AS MATERIALIZED (
            SELECT n.instance_id FROM line AS n
            WHERE pg_try_advisory_xact_lock(hashtextextended(n.instance_id, 4155176175319800712))
            LIMIT v_wanted - v_used
        ), leased AS (
            INSERT INTO "frozen".instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT f.instance_id, p_secrets[v_used + (row_number() OVER ())::integer], v_now + p_lock_ms, v_now FROM free AS f
            ON CONFLICT (instance_id) DO UPDATE
            SET lock_token = excluded.lock_token, locked_until = excluded.locked_until, locked_at = excluded.locked_at, covers = NULL
            WHERE l.locked_until <= "frozen".now_ms()
            RETURNING l.instance_id
        )
        SELECT r.seen, r.skipped, (SELECT count(*) FROM free),
               (SELECT array_agg(t.instance_id ORDER BY t.instance_id) FROM leased AS t),
               CASE WHEN v_over > 0 THEN (
                   SELECT array_agg(l.instance_id) FROM free AS f
                   JOIN "frozen".instance_locks AS l ON l.instance_id = ANY (ARRAY[f.instance_id]) WHERE l.lock_token <> '') END
        INTO v_ready, v_skipped, v_tried, v_taken, v_expired
        FROM (SELECT count(*) AS seen, count(*) FILTER (WHERE NOT r.is_free) AS skipped FROM ready AS r) AS r;
        v_used := v_used + v_tried;
        v_claimed := v_claimed || coalesce(v_taken, '{}');
        v_lost := v_lost || coalesce(v_expired, '{}');
        EXIT WHEN v_used >= v_wanted OR (v_ready < v_window AND v_over < v_window);
        -- Each round reads the messages of the one before again: behind skipped messages there may be thousands more of them.
        v_window := greatest(v_window * 4, CASE WHEN v_skipped * 2 > v_window THEN 65536 END);
    END LOOP;

    IF cardinality(v_claimed) > 0 THEN
        -- Waits for a turn that is being written ahead, see commit_1; what follows sees it.
        PERFORM 1 FROM unnest(v_claimed) AS c (instance_id)
        JOIN "frozen".instances AS i ON i.instance_id = ANY (ARRAY[c.instance_id])
        JOIN "frozen".executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY c.instance_id COLLATE "C" FOR SHARE OF e;
        v_now := "frozen".now_ms();
        -- A lease begins when it is taken, which may be after a wait for locks.
        IF v_now - v_begun > 50 THEN
            UPDATE "frozen".instance_locks AS l SET locked_until = v_now + p_lock_ms, locked_at = v_now
            WHERE l.instance_id = ANY (v_claimed);
        END IF;
        SELECT array_agg(c.instance_id) FILTER (WHERE s.messages > 1 AND (s.messages > p_messages OR s.bytes > p_bytes)),
               array_agg(c.instance_id) FILTER (WHERE s.bytes >= 1048576)
        INTO v_crowded, v_large
        FROM unnest(v_claimed) AS c (instance_id)
        CROSS JOIN LATERAL (
            SELECT count(*) AS messages, sum(octet_length(m.work_item)) AS bytes
            FROM (SELECT q.work_item FROM "frozen".orchestrator_queue AS q
                  WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now LIMIT p_messages + 1) AS m
        ) AS s;
        v_plain := v_claimed;
        IF v_crowded IS NOT NULL THEN
            v_plain := ARRAY(SELECT c.instance_id FROM unnest(v_claimed) AS c (instance_id) WHERE c.instance_id <> ALL (v_crowded));
            SELECT array_agg(w.id) INTO v_chosen
            FROM unnest(v_crowded) AS c (instance_id)
            CROSS JOIN LATERAL (
                SELECT m.id, row_number() OVER line AS n, sum(m.bytes) OVER line AS bytes
                -- A message that is neither a start nor pushed back has the same place by either time, so that the first by
                -- visible_at suffice.
                FROM (SELECT q.id, q.available_at, octet_length(q.work_item) AS bytes,
                             CASE WHEN NOT q.begins THEN 2
                                  WHEN NOT "frozen".is_item_1(q.work_item) THEN 2
                                  WHEN starts_with(q.work_item, '{"ContinueAsNew"') THEN 0
                                  ELSE 1 END AS rank
                      FROM (SELECT f.id FROM (SELECT q.id FROM "frozen".orchestrator_queue AS q
                                              WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now
                                              ORDER BY q.visible_at, q.id LIMIT p_messages) AS f
                            UNION SELECT q.id FROM "frozen".orchestrator_queue AS q
                            WHERE q.instance_id || '' = c.instance_id AND q.begins AND q.visible_at <= v_now
                            UNION SELECT q.id FROM "frozen".orchestrator_queue AS q
                            WHERE q.instance_id || '' = c.instance_id AND q.visible_at > q.available_at AND q.visible_at <= v_now) AS f
                      JOIN "frozen".orchestrator_queue AS q ON q.id = ANY (ARRAY[f.id])) AS m
                WINDOW line AS (ORDER BY m.rank, m.available_at, m.id ROWS UNBOUNDED PRECEDING)
            ) AS w
            WHERE w.n = 1 OR (w.n <= p_messages AND w.bytes <= p_bytes);
            -- Messages that an expired lease covered are free again if this lease does not cover them.
            v_lost := ARRAY(SELECT c.instance_id FROM unnest(v_crowded) AS c (instance_id) WHERE c.instance_id = ANY (v_lost));
            IF cardinality(v_lost) > 0 THEN
                UPDATE "frozen".orchestrator_queue AS q SET lock_token = NULL
                WHERE q.instance_id = ANY (v_lost) AND q.lock_token IS NOT NULL AND q.id <> ALL (v_chosen);
            END IF;
            UPDATE "frozen".instance_locks AS l SET covers = c.ids
            FROM (SELECT q.instance_id, array_agg(q.id) AS ids FROM "frozen".orchestrator_queue AS q
                  WHERE q.id = ANY (v_chosen) GROUP BY q.instance_id) AS c
            WHERE l.instance_id = ANY (ARRAY[c.instance_id]);
        END IF;
        RETURN QUERY
        WITH plain AS (
            UPDATE "frozen".orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM "frozen".instance_locks AS l
            WHERE l.instance_id = ANY (v_plain) AND q.instance_id = ANY (ARRAY[l.instance_id])
                AND q.visible_at <= v_now
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), chosen AS (
            UPDATE "frozen".orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM "frozen".instance_locks AS l
            WHERE q.id = ANY (v_chosen) AND l.instance_id = ANY (ARRAY[q.instance_id])
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), covered AS (
            SELECT p.* FROM plain AS p UNION ALL SELECT c.* FROM chosen AS c
        ), batch AS (
            -- In the order in which they come: to sort them for each list again takes longer than all the rest.
            SELECT c.instance_id, c.lock_token, array_agg(c.id) AS ids,
                   array_agg(CASE WHEN c.instance_id = ANY (v_large) THEN NULL ELSE c.work_item END) AS items,
                   sum(CASE WHEN c.instance_id = ANY (v_large) THEN octet_length(c.work_item) END) AS left_out_bytes,
                   array_agg(c.available_at) AS available, array_agg(c.attempt_count) AS attempts
            FROM (SELECT c.* FROM covered AS c ORDER BY c.instance_id, c.lock_token, c.available_at, c.id) AS c
            GROUP BY c.instance_id, c.lock_token
        )
        SELECT b.lock_token, b.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id,
               e.last_event_id, i.created_at, e.status IN ('Completed', 'Failed'),
               i.instance_id IS NULL AND EXISTS (
                   SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = b.instance_id OFFSET 0),
               CASE WHEN i.instance_id IS NULL THEN (
                   SELECT min(q.visible_at) FROM "frozen".orchestrator_queue AS q
                   WHERE q.instance_id || '' = b.instance_id AND q.begins AND q.visible_at > v_now AND "frozen".is_item_1(q.work_item)) END,
               v_now, b.ids, b.items, b.available, b.attempts, NULL::bigint, coalesce(b.instance_id = ANY (v_crowded), false),
               b.left_out_bytes, NULL::boolean
        FROM batch AS b
        LEFT JOIN "frozen".instances AS i ON i.instance_id = ANY (ARRAY[b.instance_id])
        LEFT JOIN "frozen".executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY b.available[1], b.ids[1];
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count < cardinality(v_claimed) THEN
            -- Another transaction has consumed the messages of a leased instance.
            DELETE FROM "frozen".instance_locks AS l
            WHERE l.instance_id = ANY (v_claimed) AND NOT EXISTS (
                SELECT 1 FROM "frozen".orchestrator_queue AS q
                WHERE q.instance_id = l.instance_id AND q.lock_token = l.lock_token OFFSET 0);
        END IF;
    END IF;

    IF cardinality(v_claimed) < v_wanted OR v_skipped >= 256 THEN
        o_now := v_now;
        o_skipped := v_skipped >= 256;
        IF p_asks_next AND cardinality(v_claimed) < v_wanted THEN
            o_next := least(
                (SELECT q.visible_at FROM "frozen".orchestrator_queue AS q
                 WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 > v_now ORDER BY q.visible_at + 0, q.id LIMIT 1),
                (SELECT min(l.locked_until) FROM "frozen".instance_locks AS l
                 WHERE l.locked_until > v_now AND l.locked_until < 9223372036854775807));
        END IF;
        RETURN NEXT;
    END IF;
END $$;

CREATE FUNCTION frozen.forward_notification_1(p_channel text, p_sender text, p_turns boolean, p_activities boolean, p_hops integer, p_waited_ms bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now      bigint := "frozen".now_ms();
    v_since    bigint := v_now - p_waited_ms;
    v_pins     text[];
    v_turns    text;
    v_activities     text;
    v_sessions text[];
    v_holders  text[];
BEGIN
    IF p_turns THEN
        -- The empty pin, of an instance that begins, is for every process.
        SELECT array_agg(DISTINCT coalesce(r.pinned_key, '')) INTO v_pins FROM (
            SELECT e.pinned_key FROM (
                (SELECT q.instance_id FROM "frozen".orchestrator_queue AS q
                 WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_since
                     AND coalesce((SELECT l.locked_until FROM "frozen".instance_locks AS l WHERE l.instance_id = q.instance_id), 0) <= v_now
                 ORDER BY q.visible_at + 0, q.id LIMIT 256)
                UNION ALL
                (SELECT l.instance_id FROM "frozen".instance_locks AS l
                 WHERE l.locked_until <= v_since AND l.has_aside ORDER BY l.locked_until LIMIT 256)
            ) AS q
            LEFT JOIN LATERAL (SELECT i.current_execution_id FROM "frozen".instances AS i
                               WHERE i.instance_id = q.instance_id LIMIT 1) AS i ON true
            LEFT JOIN LATERAL (SELECT e.pinned_key FROM "frozen".executions AS e
                               WHERE e.instance_id = q.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
        ) AS r;
        SELECT l.id INTO v_turns FROM "frozen".listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now AND EXISTS (
            SELECT 1 FROM unnest(v_pins) AS p (pin)
            WHERE p.pin = '' OR l.lowest IS NULL OR EXISTS (
                SELECT 1 FROM unnest(l.lowest, l.highest) AS r (lowest, highest)
                WHERE p.pin COLLATE "C" BETWEEN r.lowest AND r.highest))
        ORDER BY random() LIMIT 1;
    END IF;
    IF p_activities THEN
        SELECT array_agg(w.o_session), array_agg(w.o_holder) INTO v_sessions, v_holders FROM "frozen".waiting_sessions_1() AS w;
        SELECT l.id INTO v_activities FROM "frozen".listeners AS l
        WHERE l.activities AND l.id <> p_sender AND l.expires_at > v_now AND (
            EXISTS (SELECT 1 FROM unnest(l.tags) AS t (tag) WHERE EXISTS (
                SELECT 1 FROM "frozen".worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_since OFFSET 0))
            OR l.tags IS NULL AND EXISTS (
                SELECT 1 FROM "frozen".worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') >= '' AND q.visible_at <= v_since OFFSET 0)
            OR cardinality(l.owners) > 0 AND EXISTS (
                SELECT 1 FROM unnest(v_sessions, v_holders) AS s (session_id, holder)
                WHERE (s.holder IS NULL OR s.holder = ANY (l.owners)) AND EXISTS (
                    SELECT 1 FROM "frozen".worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = s.session_id AND q.visible_at <= v_since
                        AND (l.tags IS NULL OR coalesce('=' || q.tag, '') = ANY (l.tags)) OFFSET 0)))
        ORDER BY random() LIMIT 1;
    END IF;
    IF v_turns IS NOT NULL OR v_activities IS NOT NULL THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_activities, '[]'::jsonb, p_hops)::text);
    END IF;
END $$;

CREATE FUNCTION frozen.hold_1(p_instance text, p_kind text, p_actor text, p_reason text, OUT o_answer integer, OUT o_until bigint) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now     bigint;
    v_token   bytea;
    v_until   bigint;
    v_ended   boolean;
    v_current bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, 4155176175319800712));
    SELECT l.lock_token, l.locked_until INTO v_token, v_until FROM "frozen".instance_locks AS l
    WHERE l.instance_id = p_instance FOR UPDATE;
    SELECT i.current_execution_id INTO v_current FROM "frozen".instances AS i WHERE i.instance_id = p_instance FOR SHARE;
    SELECT e.status IN ('Completed', 'Failed') INTO v_ended FROM "frozen".executions AS e
    WHERE e.instance_id = p_instance AND e.execution_id = v_current FOR SHARE;
    v_now := "frozen".now_ms();
    o_answer := CASE
        WHEN EXISTS (SELECT 1 FROM "frozen".holds AS h WHERE h.instance_id = p_instance) THEN 1
        WHEN v_ended THEN 3
        WHEN v_current IS NULL
            AND NOT EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = p_instance)
            AND NOT EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
            AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                            WHERE q.instance_id || '' = p_instance AND q.begins AND "frozen".is_item_1(q.work_item))
            THEN 4
        WHEN EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                     WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN 5
        WHEN v_token <> '' AND v_until > v_now THEN 2
        ELSE 0 END;
    o_until := CASE WHEN o_answer = 2 THEN v_until END;
    IF o_answer = 0 THEN
        INSERT INTO "frozen".instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
        VALUES (p_instance, '', 9223372036854775807, v_now, true)
        ON CONFLICT (instance_id) DO UPDATE
        SET lock_token = '', locked_until = 9223372036854775807, locked_at = v_now, has_aside = true, covers = NULL;
        INSERT INTO "frozen".holds (instance_id, kind, actor, reason, held_at, rest_until)
        VALUES (p_instance, p_kind, p_actor, p_reason, v_now, CASE WHEN v_token = '' THEN v_until END);
        UPDATE "frozen".orchestrator_queue AS q SET is_aside = true, lock_token = NULL
        WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    END IF;
END $$;

CREATE FUNCTION frozen.hold_turn_1(p_instance text, p_secret bytea, p_kind text, p_actor text, p_reason text) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
BEGIN
    PERFORM 1 FROM "frozen".instance_locks AS l
    WHERE l.instance_id = p_instance AND l.lock_token = p_secret AND l.locked_until > "frozen".now_ms() FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
               WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN
        RETURN 5;
    END IF;
    UPDATE "frozen".instance_locks AS l SET lock_token = '', locked_until = 9223372036854775807, has_aside = true, covers = NULL
    WHERE l.instance_id = p_instance;
    INSERT INTO "frozen".holds (instance_id, kind, actor, reason, held_at)
    VALUES (p_instance, p_kind, p_actor, p_reason, "frozen".now_ms());
    UPDATE "frozen".orchestrator_queue AS q
    SET is_aside = true, lock_token = NULL,
        attempt_count = CASE WHEN q.lock_token = p_secret THEN 0 ELSE q.attempt_count END
    WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    RETURN 0;
END $$;

CREATE FUNCTION frozen.holds_lease_1(p_owner bigint) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now  bigint := "frozen".now_ms();
    v_name bytea := int8send(p_owner);
BEGIN
    RETURN EXISTS (SELECT 1 FROM "frozen".instance_locks AS l
                   WHERE l.locked_until > v_now AND substring(l.lock_token FROM 1 FOR 8) = v_name)
        OR EXISTS (SELECT 1 FROM "frozen".worker_queue AS q
                   WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now AND substring(q.lock_token FROM 1 FOR 8) = v_name)
        OR EXISTS (SELECT 1 FROM "frozen".sessions AS s WHERE s.locked_until > v_now AND s.owner = v_name);
END $$;

CREATE FUNCTION frozen.import_1(p_instance text, p_name text, p_version text, p_parent text, p_custom_status text, p_current bigint, p_status_version bigint, p_created bigint, p_updated bigint, x_execution bigint[], x_status text[], x_output text[], x_started bigint[], x_completed bigint[], x_pin text[], x_pin_key text[], x_last bigint[], x_terminal bigint[], h_execution bigint[], h_event bigint[], h_type text[], h_data text[], s_key text[], s_value text[], s_at bigint[], k_key text[], k_value text[], k_at bigint[], m_item text[], m_available bigint[], m_visible bigint[], m_attempts integer[], m_begins boolean[], a_item text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[], a_visible bigint[], a_attempts integer[], a_failures integer[], a_error text[], o_kind text, o_actor text, o_reason text, o_held bigint, u_actor text, u_action text, u_target text, u_reason text, u_request text, u_result text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, 4155176175319800712 + 1));
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, 4155176175319800712));
    IF EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = p_instance)
        OR EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = p_instance)
        OR EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
        OR EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                   WHERE q.instance_id || '' = p_instance AND q.begins AND "frozen".is_item_1(q.work_item)) THEN
        RETURN false;
    END IF;
    v_now := "frozen".now_ms();
    IF p_name IS NOT NULL THEN
        INSERT INTO "frozen".instances
            (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, custom_status,
             custom_status_version, created_at, updated_at)
        VALUES (p_instance, p_name, p_version, p_current, p_parent, p_custom_status, p_status_version, p_created, p_updated);
    END IF;
    INSERT INTO "frozen".executions
        (instance_id, execution_id, status, output, started_at, completed_at, updated_at, pinned_version, pinned_key,
         last_event_id, terminal_event_id)
    SELECT p_instance, x.execution_id, x.status, x.output, x.started_at, x.completed_at, coalesce(x.completed_at, x.started_at),
           x.pin, x.pin_key, x.last_event, x.terminal
    FROM unnest(x_execution, x_status, x_output, x_started, x_completed, x_pin, x_pin_key, x_last, x_terminal)
        AS x (execution_id, status, output, started_at, completed_at, pin, pin_key, last_event, terminal);
    INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance, h.execution_id, h.event_id, h.event_type, h.event_data
    FROM unnest(h_execution, h_event, h_type, h_data) AS h (execution_id, event_id, event_type, event_data);
    INSERT INTO "frozen".kv_store (instance_id, key, value, last_updated_at_ms)
    SELECT p_instance, s.key, s.value, s.at FROM unnest(s_key, s_value, s_at) AS s (key, value, at);
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT p_instance, k.key, k.value, k.at FROM unnest(k_key, k_value, k_at) AS k (key, value, at);
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, attempt_count, begins)
    SELECT p_instance, m.item, m.visible_at, m.available_at, m.attempts, m.begins
    FROM unnest(m_item, m_available, m_visible, m_attempts, m_begins) WITH ORDINALITY
        AS m (item, available_at, visible_at, attempts, begins, n)
    ORDER BY m.n;
    INSERT INTO "frozen".worker_queue
        (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, delayed, attempt_count, failures, last_error)
    SELECT a.item, a.visible_at, p_instance, a.execution_id, a.activity_id, a.session_id, a.tag, a.visible_at > v_now, a.attempts,
           a.failures, a.error
    FROM unnest(a_item, a_execution, a_activity, a_session, a_tag, a_visible, a_attempts, a_failures, a_error) WITH ORDINALITY
        AS a (item, execution_id, activity_id, session_id, tag, visible_at, attempts, failures, error, n)
    ORDER BY a.n;
    IF o_kind IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM "frozen".orchestrator_queue AS q
        WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN
        INSERT INTO "frozen".instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
        VALUES (p_instance, '', 9223372036854775807, v_now, true)
        ON CONFLICT (instance_id) DO UPDATE
        SET lock_token = '', locked_until = 9223372036854775807, locked_at = v_now, has_aside = true, covers = NULL;
        INSERT INTO "frozen".holds (instance_id, kind, actor, reason, held_at) VALUES (p_instance, o_kind, o_actor, o_reason, o_held);
        UPDATE "frozen".orchestrator_queue AS q SET is_aside = true, lock_token = NULL
        WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    END IF;
    INSERT INTO "frozen".audit (at, actor, action, target, reason, request, result)
    VALUES (v_now, u_actor, u_action, u_target, u_reason, u_request, u_result);
    RETURN true;
END $$;

CREATE FUNCTION frozen.is_item_1(p_text text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT p_text LIKE '{"%}}' $$;

CREATE FUNCTION frozen.keep_places_1(p_instances text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now bigint := "frozen".now_ms();
BEGIN
    INSERT INTO "frozen".instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
    SELECT f.instance_id, NULL, v_now - 1000000000000, v_now, true FROM unnest(p_instances) AS f (instance_id)
    WHERE EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = f.instance_id AND q.is_aside OFFSET 0)
    ORDER BY f.instance_id COLLATE "C"
    ON CONFLICT (instance_id) DO UPDATE SET has_aside = true;
END $$;

CREATE FUNCTION frozen.lease_new_instances_1(p_instance text[], p_secret bytea[], p_lock_ms bigint[]) RETURNS bytea[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_now    bigint := "frozen".now_ms();
    v_free   integer[];
    v_leased bytea[];
BEGIN
    SELECT array_agg(m.n::integer) INTO v_free FROM unnest(p_instance, p_secret) WITH ORDINALITY AS m (instance_id, secret, n)
    WHERE m.secret IS NOT NULL AND pg_try_advisory_xact_lock(hashtextextended(m.instance_id, 4155176175319800712));
    IF v_free IS NOT NULL THEN
        WITH leased AS (
            INSERT INTO "frozen".instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT p_instance[m.n], p_secret[m.n], v_now + p_lock_ms[m.n], v_now FROM unnest(v_free) AS m (n)
            WHERE NOT EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = p_instance[m.n] OFFSET 0)
            ON CONFLICT (instance_id) DO NOTHING
            RETURNING l.lock_token
        )
        SELECT array_agg(l.lock_token) INTO v_leased FROM leased AS l;
    END IF;
    RETURN coalesce(v_leased, '{}');
END $$;

CREATE FUNCTION frozen.notify_1(p_channel text, p_sender text, p_turns boolean, p_activities boolean, p_ended text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    v_now   bigint := "frozen".now_ms();
    v_turns text;
    v_activities  text;
    v_ended text[] := '{}';
BEGIN
    IF p_turns THEN
        SELECT l.id INTO v_turns FROM "frozen".listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF p_activities THEN
        SELECT l.id INTO v_activities FROM "frozen".listeners AS l
        WHERE l.activities AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF cardinality(p_ended) > 0
        AND EXISTS (SELECT 1 FROM "frozen".listeners AS l WHERE l.watches AND l.id <> p_sender AND l.expires_at > v_now) THEN
        v_ended := p_ended;
    END IF;
    IF v_turns IS NOT NULL OR v_activities IS NOT NULL OR cardinality(v_ended) > 0 THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_activities, to_jsonb(v_ended), 0)::text);
    END IF;
END $$;

CREATE FUNCTION frozen.now_ms() RETURNS bigint
    LANGUAGE sql PARALLEL SAFE
    AS $$ SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint $$;

CREATE FUNCTION frozen.outcomes_1(p_instances text[]) RETURNS TABLE(o_instance text, o_execution bigint, o_status text, o_output text, o_terminal text, o_custom_status text, o_custom_version bigint)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
BEGIN
    RETURN QUERY
    SELECT e.instance_id, e.execution_id, e.status, e.output,
           CASE WHEN e.status = 'Failed' THEN (
               SELECT h.event_data FROM "frozen".history AS h
               WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id
                   AND h.event_id = coalesce(e.terminal_event_id, (
                       SELECT min(t.event_id) FROM "frozen".history AS t
                       WHERE t.instance_id = e.instance_id AND t.execution_id = e.execution_id
                           AND t.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')))) END,
           i.custom_status, coalesce(i.custom_status_version, 0)
    FROM unnest(p_instances) AS wanted (instance_id)
    CROSS JOIN LATERAL (
        SELECT n.* FROM "frozen".executions AS n WHERE n.instance_id = wanted.instance_id ORDER BY n.execution_id DESC LIMIT 1
    ) AS e
    LEFT JOIN LATERAL (SELECT i.custom_status, i.custom_status_version FROM "frozen".instances AS i
                       WHERE i.instance_id = e.instance_id LIMIT 1) AS i ON true;
END $$;

CREATE FUNCTION frozen.own_1(p_owner bigint) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET lock_timeout TO '100ms'
    AS $$
BEGIN
    BEGIN
        PERFORM pg_advisory_lock(p_owner);
    EXCEPTION WHEN lock_not_available THEN
        RETURN NULL;
    END;
    INSERT INTO "frozen".owners (owner) VALUES (p_owner) ON CONFLICT (owner) DO NOTHING;
    RETURN pg_backend_pid();
END $$;

CREATE FUNCTION frozen.register_listener_1(p_channel text, p_id text, p_turns boolean, p_activities boolean, p_watches boolean, p_lowest text[], p_highest text[], p_tags text[], p_owners text[], p_for bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    v_now bigint := "frozen".now_ms();
BEGIN
    DELETE FROM "frozen".listeners AS l WHERE l.expires_at < v_now - 60000;
    INSERT INTO "frozen".listeners AS l (id, turns, activities, watches, lowest, highest, tags, owners, expires_at)
    VALUES (p_id, p_turns, p_activities, p_watches, p_lowest, p_highest, p_tags, p_owners, v_now + p_for)
    ON CONFLICT (id) DO UPDATE
    SET turns = excluded.turns, activities = excluded.activities, watches = excluded.watches, lowest = excluded.lowest,
        highest = excluded.highest, tags = excluded.tags, owners = excluded.owners, expires_at = excluded.expires_at;
    PERFORM pg_notify(p_channel, jsonb_build_array(p_id, p_turns, p_activities, p_watches, p_for)::text);
END $$;

CREATE FUNCTION frozen.release_1(p_instance text) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_rest bigint;
BEGIN
    PERFORM 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = p_instance FOR UPDATE;
    DELETE FROM "frozen".holds AS h WHERE h.instance_id = p_instance RETURNING h.rest_until INTO v_rest;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE "frozen".orchestrator_queue AS q SET is_aside = false WHERE q.instance_id = p_instance AND q.is_aside;
    IF v_rest IS NULL THEN
        DELETE FROM "frozen".instance_locks AS l WHERE l.instance_id = p_instance;
    ELSE
        UPDATE "frozen".instance_locks AS l SET locked_until = v_rest, has_aside = false WHERE l.instance_id = p_instance;
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION frozen.release_cancelled_1() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM "frozen".release_1(NEW.instance_id);
    RETURN NULL;
END $$;

CREATE FUNCTION frozen.renew_1(p_member integer[], p_kind integer[], p_instance text[], p_activity_row bigint[], p_secret bytea[], p_extend bigint[]) RETURNS SETOF integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now      bigint;
    v_renewed  bytea[];
    v_sessions text[];
BEGIN
    IF 0 = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE "frozen".instance_locks AS l
            SET locked_until = greatest(l.locked_until, "frozen".now_ms() + m.extend)
            FROM unnest(p_kind, p_instance, p_secret, p_extend) AS m (kind, instance_id, secret, extend)
            WHERE m.kind = 0 AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                AND l.locked_until > "frozen".now_ms()
            RETURNING l.lock_token
        )
        SELECT array_agg(r.lock_token) INTO v_renewed FROM renewed AS r;
    END IF;
    IF 1 = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE "frozen".worker_queue AS q
            SET locked_until = greatest(q.locked_until, "frozen".now_ms() + m.extend)
            FROM unnest(p_kind, p_activity_row, p_secret, p_extend) AS m (kind, id, secret, extend)
            WHERE m.kind = 1 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
                AND q.locked_until > "frozen".now_ms()
            RETURNING q.lock_token, q.session_id
        )
        SELECT v_renewed || array_agg(r.lock_token), array_agg(r.session_id) FILTER (WHERE r.session_id IS NOT NULL)
        INTO v_renewed, v_sessions FROM renewed AS r;
        IF v_sessions IS NOT NULL THEN
            PERFORM "frozen".touch_sessions_1(v_sessions);
        END IF;
    END IF;
    -- A lease that two members renew is renewed for both.
    RETURN QUERY SELECT m.member FROM unnest(p_member, p_secret) AS m (member, secret) WHERE m.secret = ANY (v_renewed);
END $$;

CREATE FUNCTION frozen.reset_1(p_source text, p_execution bigint, p_last_event bigint, p_target text, p_end_event bigint, p_end_type text, p_end_data text, p_end_output text, p_next bigint, p_name text, p_version text, p_parent text, p_pin text, p_pin_key text, p_custom_status text, h_event bigint[], h_type text[], h_data text[], a_item text[], a_instance text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[], c_instance text[], c_execution bigint[], c_activity bigint[], m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[], f_item text[], p_first_at bigint, s_key text[], s_value text[], s_at bigint[], k_key text[], k_value text[], k_at bigint[], u_actor text, u_action text, u_target text, u_reason text, u_request text, u_result text, OUT o_answer integer, OUT o_until bigint) RETURNS record
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now    bigint;
    v_fork   boolean := p_source <> p_target;
    v_token  bytea;
    v_until  bigint;
    v_known  boolean;
    v_newest bigint;
    v_last   bigint;
    v_aside  boolean;
    v_first  bigint;
BEGIN
    IF v_fork THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_target, 4155176175319800712 + 1));
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(p_source, 4155176175319800712));
    SELECT l.lock_token, l.locked_until INTO v_token, v_until FROM "frozen".instance_locks AS l
    WHERE l.instance_id = p_source FOR UPDATE;
    SELECT true INTO v_known FROM "frozen".instances AS i WHERE i.instance_id = p_source FOR UPDATE;
    SELECT e.execution_id INTO v_newest FROM "frozen".executions AS e
    WHERE e.instance_id = p_source ORDER BY e.execution_id DESC LIMIT 1 FOR UPDATE;
    SELECT h.event_id INTO v_last FROM "frozen".history AS h
    WHERE h.instance_id = p_source AND h.execution_id = p_execution ORDER BY h.event_id DESC LIMIT 1;
    v_now := "frozen".now_ms();
    o_answer := CASE
        WHEN v_known IS NULL THEN 4
        WHEN NOT v_fork AND v_token <> '' AND v_until > v_now THEN 1
        WHEN v_newest IS DISTINCT FROM p_execution OR v_last IS DISTINCT FROM p_last_event THEN 2
        WHEN v_fork AND (
            EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = p_target)
            OR EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = p_target)
            OR EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = p_target AND h.execution_id = 1)
            OR EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                       WHERE q.instance_id || '' = p_target AND q.begins AND "frozen".is_item_1(q.work_item)))
            THEN 3
        ELSE 0 END;
    o_until := CASE WHEN o_answer = 1 THEN v_until END;
    IF o_answer <> 0 THEN
        RETURN;
    END IF;
    -- A lease that is over ends. A rest and the place in line stay.
    IF NOT v_fork AND v_token <> '' THEN
        UPDATE "frozen".orchestrator_queue AS q SET lock_token = NULL WHERE q.instance_id = p_source AND q.lock_token IS NOT NULL;
        DELETE FROM "frozen".instance_locks AS l WHERE l.instance_id = p_source RETURNING l.has_aside INTO v_aside;
        IF v_aside THEN
            PERFORM "frozen".keep_places_1(ARRAY[p_source]);
        END IF;
    END IF;
    IF p_end_event IS NOT NULL THEN
        UPDATE "frozen".executions AS e
        SET status = 'ContinuedAsNew', output = p_end_output, completed_at = v_now, updated_at = v_now, last_event_id = p_end_event,
            terminal_event_id = p_end_event
        WHERE e.instance_id = p_source AND e.execution_id = p_execution;
        INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
        VALUES (p_source, p_execution, p_end_event, p_end_type, p_end_data);
    END IF;
    DELETE FROM "frozen".kv_store AS s WHERE s.instance_id = p_target;
    DELETE FROM "frozen".kv_delta AS d WHERE d.instance_id = p_target;
    INSERT INTO "frozen".kv_store (instance_id, key, value, last_updated_at_ms)
    SELECT p_target, s.key, s.value, s.at FROM unnest(s_key, s_value, s_at) AS s (key, value, at);
    INSERT INTO "frozen".kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT p_target, k.key, k.value, coalesce(k.at, v_now) FROM unnest(k_key, k_value, k_at) AS k (key, value, at);
    INSERT INTO "frozen".instances AS i
        (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, custom_status,
         custom_status_version, created_at, updated_at)
    VALUES (p_target, p_name, p_version, p_next, p_parent, p_custom_status, 1, v_now, v_now)
    ON CONFLICT (instance_id) DO UPDATE
    SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
        current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
        custom_status = excluded.custom_status, custom_status_version = i.custom_status_version + 1, updated_at = v_now;
    -- Events can be stored before their execution.
    SELECT h.event_id INTO v_last FROM "frozen".history AS h
    WHERE h.instance_id = p_target AND h.execution_id = p_next ORDER BY h.event_id DESC LIMIT 1;
    INSERT INTO "frozen".executions
        (instance_id, execution_id, status, started_at, updated_at, last_event_id, pinned_version, pinned_key)
    VALUES (p_target, p_next, 'Running', v_now, v_now, greatest(h_event[cardinality(h_event)], v_last, 0), p_pin, p_pin_key);
    INSERT INTO "frozen".history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_target, p_next, h.event_id, h.event_type, h.event_data
    FROM unnest(h_event, h_type, h_data) AS h (event_id, event_type, event_data);
    INSERT INTO "frozen".worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT a.item, v_now, a.instance_id, a.execution_id, a.activity_id, a.session_id, a.tag
    FROM unnest(a_item, a_instance, a_execution, a_activity, a_session, a_tag) WITH ORDINALITY
        AS a (item, instance_id, execution_id, activity_id, session_id, tag, n)
    ORDER BY a.n;
    DELETE FROM "frozen".worker_queue AS q
    USING unnest(c_instance, c_execution, c_activity) AS c (instance_id, execution_id, activity_id)
    WHERE q.instance_id = ANY (ARRAY[c.instance_id]) AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
    -- The first messages go before all messages that wait. Plans of one chain of resets have the same time, so that messages of an
    -- earlier reset can wait with the time of this plan.
    IF cardinality(f_item) > 0 THEN
        SELECT min(greatest(q.available_at - 1, 0)) INTO v_first
        FROM "frozen".orchestrator_queue AS q WHERE q.instance_id = p_target;
        v_first := least(v_first, p_first_at, v_now);
    END IF;
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT p_target, f.item, v_first, v_first, false
    FROM unnest(f_item) WITH ORDINALITY AS f (item, n) ORDER BY f.n;
    INSERT INTO "frozen".orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT m.instance_id, m.item, greatest(m.not_before, v_now), greatest(m.not_before, v_now), m.begins
    FROM unnest(m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY AS m (instance_id, item, not_before, begins, n)
    ORDER BY m.n;
    INSERT INTO "frozen".audit (at, actor, action, target, reason, request, result)
    VALUES (v_now, u_actor, u_action, u_target, u_reason, u_request, u_result);
END $$;

CREATE FUNCTION frozen.set_aside_1(p_most integer) RETURNS integer
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now       bigint := "frozen".now_ms();
    v_ids       bigint[];
    v_instances text[];
    v_count     integer;
BEGIN
    SELECT array_agg(f.id), array_agg(DISTINCT f.instance_id) INTO v_ids, v_instances FROM (
        SELECT q.id, q.instance_id FROM "frozen".orchestrator_queue AS q
        WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_now
            AND (SELECT l.locked_until FROM "frozen".instance_locks AS l WHERE l.instance_id = q.instance_id) > v_now
        ORDER BY q.visible_at + 0, q.id LIMIT p_most
    ) AS f;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(l.instance_id) INTO v_instances FROM (
        SELECT l.instance_id FROM "frozen".instance_locks AS l
        WHERE l.instance_id = ANY (v_instances) FOR UPDATE SKIP LOCKED
    ) AS l;
    UPDATE "frozen".instance_locks AS l SET has_aside = true WHERE l.instance_id = ANY (v_instances) AND NOT l.has_aside;
    -- By ids: the messages that are set aside already may be many.
    UPDATE "frozen".orchestrator_queue AS q SET is_aside = true FROM unnest(v_ids) AS f (id)
    WHERE q.id = ANY (ARRAY[f.id]) AND q.lock_token IS NULL AND q.instance_id || '' = ANY (v_instances);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

CREATE FUNCTION frozen.settle_turn_1(p_instance text, p_secret bytea, p_ids bigint[], p_actions integer[], p_reasons text[], p_visible_at bigint, p_release boolean, p_holds_back boolean) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    AS $$
DECLARE
    v_count integer;
    v_aside boolean;
BEGIN
    PERFORM 1 FROM "frozen".instance_locks AS l WHERE l.instance_id = p_instance AND l.lock_token = p_secret FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM "frozen".orchestrator_queue AS q
        USING unnest(p_ids, p_actions, p_reasons) WITH ORDINALITY AS m (id, action, reason, n)
        WHERE m.action <> 2 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING q.instance_id, q.work_item, q.attempt_count, m.action, m.reason, m.n
    ), dead AS (
        INSERT INTO "frozen".dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
        SELECT 'orchestrator', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, "frozen".now_ms()
        FROM gone AS g WHERE g.action = 0 ORDER BY g.n
    ), back AS (
        UPDATE "frozen".orchestrator_queue AS q
        SET lock_token = NULL, is_aside = false, attempt_count = q.attempt_count - 1, visible_at = p_visible_at
        FROM unnest(p_ids, p_actions) AS m (id, action)
        WHERE m.action = 2 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM back) INTO v_count;
    IF v_count <> cardinality(p_ids) THEN
        RAISE EXCEPTION 'settling messages changed % rows instead of %', v_count, cardinality(p_ids) USING ERRCODE = 'OL001';
    END IF;
    IF p_release AND p_holds_back THEN
        UPDATE "frozen".instance_locks AS l SET lock_token = '', locked_until = p_visible_at, covers = NULL WHERE l.instance_id = p_instance;
    ELSIF p_release THEN
        DELETE FROM "frozen".instance_locks AS l WHERE l.instance_id = p_instance RETURNING l.has_aside INTO v_aside;
        IF v_aside THEN
            PERFORM "frozen".keep_places_1(ARRAY[p_instance]);
        END IF;
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION frozen.start_1(p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_use_existing boolean[], p_secret bytea[], p_lock_ms bigint[], m_member integer[], m_item text[]) RETURNS TABLE(o_member integer, o_taken boolean, o_status text, o_now bigint, o_id bigint, o_secret bytea)
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    AS $$
DECLARE
    v_now    bigint;
    v_taken  boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_found  integer[];
    v_leased bytea[] := '{}';
    v_one    integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(b.instance_id, 4155176175319800712 + 1))
    FROM (SELECT DISTINCT m.instance_id FROM unnest(p_instance) AS m (instance_id) ORDER BY m.instance_id) AS b;
    SELECT array_agg(b.member) INTO v_found FROM (
        SELECT m.member, m.instance_id, row_number() OVER (PARTITION BY m.instance_id ORDER BY m.member) AS n
        FROM unnest(p_member, p_instance) AS m (member, instance_id)
    ) AS b
    WHERE b.n > 1
        OR EXISTS (SELECT 1 FROM "frozen".instances AS i WHERE i.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM "frozen".executions AS e WHERE e.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM "frozen".history AS h WHERE h.instance_id = b.instance_id AND h.execution_id = 1 OFFSET 0)
        OR EXISTS (SELECT 1 FROM "frozen".orchestrator_queue AS q
                   WHERE q.instance_id || '' = b.instance_id AND q.begins AND "frozen".is_item_1(q.work_item) OFFSET 0);
    FOREACH v_one IN ARRAY coalesce(v_found, '{}') LOOP
        v_taken[v_one] := true;
        p_secret[v_one] := NULL;
    END LOOP;
    v_now := "frozen".now_ms();
    IF cardinality(array_remove(p_secret, NULL)) > 0 THEN
        v_leased := "frozen".lease_new_instances_1(p_instance, p_secret, p_lock_ms);
        v_now := "frozen".now_ms();
    END IF;
    RETURN QUERY
    WITH stored AS (
        INSERT INTO "frozen".orchestrator_queue AS q
            (instance_id, work_item, visible_at, available_at, begins, lock_token, attempt_count)
        SELECT a.instance_id, a.item, a.at, a.at, a.begins, a.secret, (a.secret IS NOT NULL)::integer FROM (
            SELECT m.instance_id, m.item, v_now + m.delay AS at, true AS begins,
                   CASE WHEN m.secret = ANY (v_leased) THEN m.secret END AS secret, m.member, 0::bigint AS n
            FROM unnest(p_member, p_instance, p_item, p_delay, p_secret) AS m (member, instance_id, item, delay, secret)
            WHERE NOT v_taken[m.member]
            UNION ALL
            SELECT p_instance[m.member], m.item, CASE WHEN v_taken[m.member] THEN v_now ELSE v_now + p_delay[m.member] END,
                   false, NULL, m.member, m.n
            FROM unnest(m_member, m_item) WITH ORDINALITY AS m (member, item, n)
            WHERE NOT v_taken[m.member] OR p_use_existing[m.member]
        ) AS a ORDER BY a.member, a.n
        RETURNING q.id, q.lock_token
    )
    SELECT NULL::integer, NULL::boolean, NULL::text, v_now, s.id, s.lock_token
    FROM stored AS s WHERE s.lock_token IS NOT NULL;
    RETURN QUERY SELECT m.member, v_taken[m.member],
        CASE WHEN v_taken[m.member] THEN (
            SELECT e.status FROM "frozen".executions AS e WHERE e.instance_id = m.instance_id
            ORDER BY e.execution_id DESC LIMIT 1) END, v_now, NULL::bigint, NULL::bytea
    FROM unnest(p_member, p_instance) AS m (member, instance_id);
END $$;

CREATE FUNCTION frozen.touch_sessions_1(p_sessions text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_now bigint := "frozen".now_ms();
BEGIN
    UPDATE "frozen".sessions AS s SET last_activity_at = v_now
    FROM (SELECT l.session_id FROM unnest(p_sessions) AS n (session_id)
          JOIN "frozen".sessions AS l ON l.session_id = ANY (ARRAY[n.session_id])
          ORDER BY n.session_id COLLATE "C" FOR UPDATE OF l) AS l
    WHERE s.session_id = ANY (ARRAY[l.session_id]) AND s.locked_until > v_now;
END $$;

CREATE FUNCTION frozen.waiting_sessions_1() RETURNS TABLE(o_session text, o_holder text)
    LANGUAGE plpgsql
    AS $$
DECLARE
    v_now bigint := "frozen".now_ms();
BEGIN
    RETURN QUERY
    WITH RECURSIVE waiting (session_id) AS (
        (SELECT q.session_id FROM "frozen".worker_queue AS q WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL
         ORDER BY q.session_id, q.id LIMIT 1)
        UNION ALL
        SELECT (SELECT q.session_id FROM "frozen".worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL AND q.session_id > w.session_id
                ORDER BY q.session_id, q.id LIMIT 1)
        FROM waiting AS w WHERE w.session_id IS NOT NULL
    )
    SELECT w.session_id::text, CASE WHEN s.locked_until > v_now THEN s.worker_id END::text FROM waiting AS w
    LEFT JOIN LATERAL (SELECT s.* FROM "frozen".sessions AS s WHERE s.session_id = w.session_id LIMIT 1) AS s ON true
    WHERE w.session_id IS NOT NULL;
END $$;

CREATE TABLE frozen.audit (
    id bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    reason text NOT NULL,
    request text,
    result text NOT NULL
);

ALTER TABLE frozen.audit ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME frozen.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frozen.dead_letters (
    id bigint NOT NULL,
    queue text NOT NULL,
    instance_id text COLLATE pg_catalog."C",
    work_item text NOT NULL,
    reason text NOT NULL,
    attempt_count integer NOT NULL,
    dead_at bigint NOT NULL
);

ALTER TABLE frozen.dead_letters ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME frozen.dead_letters_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frozen.executions (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    execution_id bigint NOT NULL,
    status text DEFAULT 'Running'::text NOT NULL,
    output text,
    started_at bigint NOT NULL,
    completed_at bigint,
    updated_at bigint NOT NULL,
    pinned_version text,
    pinned_key text COLLATE pg_catalog."C",
    last_event_id bigint DEFAULT 0 NOT NULL,
    terminal_event_id bigint
)
WITH (fillfactor='70');

CREATE TABLE frozen.history (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    execution_id bigint NOT NULL,
    event_id bigint NOT NULL,
    event_type text NOT NULL,
    event_data text NOT NULL
);

CREATE TABLE frozen.holds (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    held_at bigint NOT NULL,
    rest_until bigint
);

CREATE TABLE frozen.instance_locks (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    lock_token bytea,
    locked_until bigint NOT NULL,
    locked_at bigint NOT NULL,
    has_aside boolean DEFAULT false NOT NULL,
    covers bigint[]
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');

CREATE TABLE frozen.instances (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    created_as bigint NOT NULL,
    orchestration_name text NOT NULL,
    orchestration_version text,
    current_execution_id bigint NOT NULL,
    parent_instance_id text COLLATE pg_catalog."C",
    custom_status text,
    custom_status_version bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
)
WITH (fillfactor='85');

ALTER TABLE frozen.instances ALTER COLUMN created_as ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME frozen.instances_created_as_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frozen.kv_delta (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value text,
    last_updated_at_ms bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70');

CREATE TABLE frozen.kv_store (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    last_updated_at_ms bigint DEFAULT 0 NOT NULL
)
WITH (fillfactor='85');

CREATE TABLE frozen.listeners (
    id text NOT NULL COLLATE pg_catalog."C",
    turns boolean NOT NULL,
    activities boolean NOT NULL,
    watches boolean NOT NULL,
    lowest text[] COLLATE pg_catalog."C",
    highest text[] COLLATE pg_catalog."C",
    tags text[] COLLATE pg_catalog."C",
    owners text[] NOT NULL COLLATE pg_catalog."C",
    expires_at bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE frozen.message_keys (
    instance_id text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL
);

CREATE TABLE frozen.nodes (
    node_id text NOT NULL COLLATE pg_catalog."C",
    report jsonb NOT NULL,
    seen_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    kept_until bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE frozen.orchestrator_queue (
    id bigint NOT NULL,
    instance_id text NOT NULL COLLATE pg_catalog."C",
    work_item text NOT NULL,
    visible_at bigint NOT NULL,
    available_at bigint NOT NULL,
    lock_token bytea,
    attempt_count integer DEFAULT 0 NOT NULL,
    begins boolean NOT NULL,
    is_aside boolean DEFAULT false NOT NULL,
    origin bytea,
    CONSTRAINT orchestrator_queue_attempt_count_check CHECK ((attempt_count >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');

ALTER TABLE frozen.orchestrator_queue ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME frozen.orchestrator_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE frozen.outlast_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    usable_from integer NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE frozen.owners (
    owner bigint NOT NULL
);

CREATE TABLE frozen.paused_orchestrations (
    orchestration text NOT NULL COLLATE pg_catalog."C",
    actor text NOT NULL,
    reason text NOT NULL,
    paused_at bigint NOT NULL
);

CREATE TABLE frozen.sessions (
    session_id text NOT NULL COLLATE pg_catalog."C",
    worker_id text NOT NULL COLLATE pg_catalog."C",
    locked_until bigint NOT NULL,
    last_activity_at bigint NOT NULL,
    owner bytea
)
WITH (fillfactor='50');

CREATE TABLE frozen.worker_queue (
    id bigint NOT NULL,
    work_item text NOT NULL,
    visible_at bigint NOT NULL,
    lock_token bytea,
    locked_until bigint,
    attempt_count integer DEFAULT 0 NOT NULL,
    instance_id text NOT NULL COLLATE pg_catalog."C",
    execution_id bigint NOT NULL,
    activity_id bigint NOT NULL,
    session_id text COLLATE pg_catalog."C",
    tag text COLLATE pg_catalog."C",
    delayed boolean DEFAULT false NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    last_error text,
    CONSTRAINT worker_queue_attempt_count_check CHECK ((attempt_count >= 0)),
    CONSTRAINT worker_queue_failures_check CHECK ((failures >= 0))
)
WITH (fillfactor='85', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_threshold='1000');

ALTER TABLE frozen.worker_queue ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME frozen.worker_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

INSERT INTO frozen.audit VALUES (1, 1795126492160, 'build Broken', 'instance.park', 'parked', 'the code of the orchestration panicked: the error output of the runtime''s process has the message', NULL, 'done');
INSERT INTO frozen.audit VALUES (2, 1795126492211, 'ann', 'instance.pause', 'held', 'look', NULL, 'done');
INSERT INTO frozen.audit VALUES (3, 1795126492219, 'ann', 'orchestration.pause', 'Pauses', 'deploy', NULL, 'done');
INSERT INTO frozen.audit VALUES (4, 1795126493236, 'ann', 'instance.pause', 'paused', 'deploy', NULL, 'done');
INSERT INTO frozen.audit VALUES (5, 1795126493307, 'ann', 'instance.fork', 'reset', 'try again', NULL, 'done: forked to ''forked'' at event 3 of execution 1');
INSERT INTO frozen.audit VALUES (6, 1795126493323, 'ann', 'instance.reset', 'reset', 'try again', NULL, 'done: to event 3 of execution 1');

INSERT INTO frozen.dead_letters VALUES (1, 'orchestrator', 'damaged', 'damaged', 'cannot decode work item: expected value at line 1 column 1', 0, 1795126492154);

INSERT INTO frozen.executions VALUES ('failed', 1, 'Failed', 'broken x', 1795126491735, 1795126491735, 1795126491735, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, 2);
INSERT INTO frozen.executions VALUES ('done', 1, 'Completed', 'did done', 1795126491735, 1795126491785, 1795126491785, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 4, 4);
INSERT INTO frozen.executions VALUES ('waits', 1, 'Running', NULL, 1795126491806, NULL, 1795126491806, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('held', 1, 'Running', NULL, 1795126491826, NULL, 1795126491826, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('paused', 1, 'Running', NULL, 1795126491833, NULL, 1795126491833, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('parked', 1, 'Running', NULL, 1795126491841, NULL, 1795126491841, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('damaged', 1, 'Running', NULL, 1795126491849, NULL, 1795126491849, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('turn', 1, 'Running', NULL, 1795126491852, NULL, 1795126491852, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('detaches', 1, 'Running', NULL, 1795126491889, NULL, 1795126491889, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 5, NULL);
INSERT INTO frozen.executions VALUES ('detached', 1, 'Running', NULL, 1795126491921, NULL, 1795126491921, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('detached-works', 1, 'Running', NULL, 1795126491921, NULL, 1795126491921, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('parent', 1, 'Running', NULL, 1795126491929, NULL, 1795126491929, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('the-child', 1, 'Running', NULL, 1795126491942, NULL, 1795126491942, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('tagged', 1, 'Running', NULL, 1795126491953, NULL, 1795126491953, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('reads', 1, 'Running', NULL, 1795126491962, NULL, 1795126492012, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 7, NULL);
INSERT INTO frozen.executions VALUES ('once', 1, 'Running', NULL, 1795126492030, NULL, 1795126492030, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('continues', 1, 'ContinuedAsNew', '2', 1795126492047, 1795126492047, 1795126492047, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 4, 4);
INSERT INTO frozen.executions VALUES ('continues', 2, 'ContinuedAsNew', '3', 1795126492053, 1795126492053, 1795126492053, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 4, 4);
INSERT INTO frozen.executions VALUES ('continues', 3, 'Running', NULL, 1795126492060, NULL, 1795126492060, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 7, NULL);
INSERT INTO frozen.executions VALUES ('keeps', 1, 'Running', NULL, 1795126492068, NULL, 1795126492068, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 6, NULL);
INSERT INTO frozen.executions VALUES ('races', 1, 'Running', NULL, 1795126492085, NULL, 1795126492092, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 7, NULL);
INSERT INTO frozen.executions VALUES ('undoes', 1, 'Running', NULL, 1795126492097, NULL, 1795126492120, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 7, NULL);
INSERT INTO frozen.executions VALUES ('cancelled', 1, 'Failed', 'canceled: no longer needed', 1795126491785, 1795126492122, 1795126492122, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 6, 6);
INSERT INTO frozen.executions VALUES ('leased', 1, 'Running', NULL, 1795126492155, NULL, 1795126492155, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('noted', 1, 'Running', NULL, 1795126492160, NULL, 1795126492160, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('session-leased', 1, 'Running', NULL, 1795126492168, NULL, 1795126492168, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('reset', 1, 'ContinuedAsNew', 'reset', 1795126491866, 1795126493323, 1795126493323, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 8, 8);
INSERT INTO frozen.executions VALUES ('session', 1, 'Running', NULL, 1795126492173, NULL, 1795126492173, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('queued', 1, 'Running', NULL, 1795126492175, NULL, 1795126492175, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('sleeps', 1, 'Running', NULL, 1795126492180, NULL, 1795126492180, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 2, NULL);
INSERT INTO frozen.executions VALUES ('forked', 1, 'Running', NULL, 1795126493307, NULL, 1795126493307, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);
INSERT INTO frozen.executions VALUES ('reset', 2, 'Running', NULL, 1795126493323, NULL, 1795126493323, '0.1.32', '000000000000000000000000000000000000000100000000000000000032~', 3, NULL);

INSERT INTO frozen.history VALUES ('done', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795126491715,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"done","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('done', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795126491715,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"done"}');
INSERT INTO frozen.history VALUES ('failed', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795126491715,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Fails","version":"1.0.0","input":"x","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('failed', 1, 2, 'OrchestrationFailed', '{"event_id":2,"source_event_id":null,"instance_id":"failed","execution_id":1,"timestamp_ms":1795126491715,"duroxide_version":"0.1.32","type":"OrchestrationFailed","details":{"Application":{"kind":"OrchestrationFailed","message":"broken x","retryable":false}}}');
INSERT INTO frozen.history VALUES ('done', 1, 3, 'ActivityCompleted', '{"event_id":3,"source_event_id":2,"instance_id":"done","execution_id":1,"timestamp_ms":1795126491735,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did done"}');
INSERT INTO frozen.history VALUES ('done', 1, 4, 'OrchestrationCompleted', '{"event_id":4,"source_event_id":null,"instance_id":"done","execution_id":1,"timestamp_ms":1795126491735,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"did done"}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126491745,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"cancelled","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126491745,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126491745,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('waits', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"waits","execution_id":1,"timestamp_ms":1795126491763,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"waits","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('waits', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"waits","execution_id":1,"timestamp_ms":1795126491763,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('waits', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"waits","execution_id":1,"timestamp_ms":1795126491763,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('held', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"held","execution_id":1,"timestamp_ms":1795126491781,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"held","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('held', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"held","execution_id":1,"timestamp_ms":1795126491781,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('held', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"held","execution_id":1,"timestamp_ms":1795126491781,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('paused', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"paused","execution_id":1,"timestamp_ms":1795126491791,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Pauses","version":"1.0.0","input":"paused","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('paused', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"paused","execution_id":1,"timestamp_ms":1795126491791,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('paused', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"paused","execution_id":1,"timestamp_ms":1795126491791,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('parked', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"parked","execution_id":1,"timestamp_ms":1795126491799,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Parks","version":"1.0.0","input":"parked","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('parked', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"parked","execution_id":1,"timestamp_ms":1795126491799,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('parked', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"parked","execution_id":1,"timestamp_ms":1795126491799,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('damaged', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"damaged","execution_id":1,"timestamp_ms":1795126491807,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"damaged","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('damaged', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"damaged","execution_id":1,"timestamp_ms":1795126491807,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('damaged', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"damaged","execution_id":1,"timestamp_ms":1795126491807,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('turn', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"turn","execution_id":1,"timestamp_ms":1795126491810,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"turn","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('turn', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"turn","execution_id":1,"timestamp_ms":1795126491810,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('turn', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"turn","execution_id":1,"timestamp_ms":1795126491810,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('reset', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Steps","version":"1.0.0","input":"reset","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('reset', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"reset 1"}');
INSERT INTO frozen.history VALUES ('reset', 1, 3, 'ActivityCompleted', '{"event_id":3,"source_event_id":2,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491866,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did reset 1"}');
INSERT INTO frozen.history VALUES ('reset', 1, 4, 'ActivityScheduled', '{"event_id":4,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491866,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"reset 2"}');
INSERT INTO frozen.history VALUES ('reset', 1, 5, 'ActivityCompleted', '{"event_id":5,"source_event_id":4,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491872,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did reset 2"}');
INSERT INTO frozen.history VALUES ('reset', 1, 6, 'CustomStatusUpdated', '{"event_id":6,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491872,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('reset', 1, 7, 'ExternalSubscribed', '{"event_id":7,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126491872,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('detaches', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"detaches","execution_id":1,"timestamp_ms":1795126491877,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Detaches","version":"1.0.0","input":"detaches","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('detaches', 1, 2, 'OrchestrationChained', '{"event_id":2,"source_event_id":null,"instance_id":"detaches","execution_id":1,"timestamp_ms":1795126491877,"duroxide_version":"0.1.32","type":"OrchestrationChained","name":"Waits","instance":"detached","input":"detaches"}');
INSERT INTO frozen.history VALUES ('detaches', 1, 3, 'OrchestrationChained', '{"event_id":3,"source_event_id":null,"instance_id":"detaches","execution_id":1,"timestamp_ms":1795126491877,"duroxide_version":"0.1.32","type":"OrchestrationChained","name":"Works","instance":"detached-works","input":"tag later detaches"}');
INSERT INTO frozen.history VALUES ('detaches', 1, 4, 'CustomStatusUpdated', '{"event_id":4,"source_event_id":null,"instance_id":"detaches","execution_id":1,"timestamp_ms":1795126491877,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('detaches', 1, 5, 'ExternalSubscribed', '{"event_id":5,"source_event_id":null,"instance_id":"detaches","execution_id":1,"timestamp_ms":1795126491877,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('detached', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"detached","execution_id":1,"timestamp_ms":1795126491909,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"detaches","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('detached', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"detached","execution_id":1,"timestamp_ms":1795126491909,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('detached', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"detached","execution_id":1,"timestamp_ms":1795126491909,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('detached-works', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"detached-works","execution_id":1,"timestamp_ms":1795126491909,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"tag later detaches","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('detached-works', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"detached-works","execution_id":1,"timestamp_ms":1795126491909,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"tag later detaches","tag":"later detaches"}');
INSERT INTO frozen.history VALUES ('parent', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795126491917,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"child","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('parent', 1, 2, 'SubOrchestrationScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"parent","execution_id":1,"timestamp_ms":1795126491917,"duroxide_version":"0.1.32","type":"SubOrchestrationScheduled","name":"Waits","instance":"the-child","input":"child"}');
INSERT INTO frozen.history VALUES ('the-child', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"the-child","execution_id":1,"timestamp_ms":1795126491930,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"child","parent_instance":"parent","parent_id":2,"parent_execution_id":1}');
INSERT INTO frozen.history VALUES ('the-child', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"the-child","execution_id":1,"timestamp_ms":1795126491930,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('the-child', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"the-child","execution_id":1,"timestamp_ms":1795126491930,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('tagged', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"tagged","execution_id":1,"timestamp_ms":1795126491941,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"tag later","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('tagged', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"tagged","execution_id":1,"timestamp_ms":1795126491941,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"tag later","tag":"later"}');
INSERT INTO frozen.history VALUES ('reads', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126491949,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Reads","version":"1.0.0","input":"3","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('reads', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126491949,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"read 0"}');
INSERT INTO frozen.history VALUES ('reads', 1, 3, 'ExternalSubscribedPersistent', '{"event_id":3,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126491949,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"q"}');
INSERT INTO frozen.history VALUES ('continues', 2, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"continues","execution_id":2,"timestamp_ms":1795126492048,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Continues","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null,"carry_forward_events":[["carried","kept"]]}');
INSERT INTO frozen.history VALUES ('reads', 1, 4, 'ExternalEventPersistent', '{"event_id":4,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126491974,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"unread","data":"x"}');
INSERT INTO frozen.history VALUES ('reads', 1, 5, 'ExternalEventPersistent', '{"event_id":5,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126492002,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"q","data":"first"}');
INSERT INTO frozen.history VALUES ('reads', 1, 6, 'CustomStatusUpdated', '{"event_id":6,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126492002,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"read 1"}');
INSERT INTO frozen.history VALUES ('reads', 1, 7, 'ExternalSubscribedPersistent', '{"event_id":7,"source_event_id":null,"instance_id":"reads","execution_id":1,"timestamp_ms":1795126492002,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"q"}');
INSERT INTO frozen.history VALUES ('once', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"once","execution_id":1,"timestamp_ms":1795126492019,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Reads","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('once', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"once","execution_id":1,"timestamp_ms":1795126492019,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"read 0"}');
INSERT INTO frozen.history VALUES ('once', 1, 3, 'ExternalSubscribedPersistent', '{"event_id":3,"source_event_id":null,"instance_id":"once","execution_id":1,"timestamp_ms":1795126492019,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"q"}');
INSERT INTO frozen.history VALUES ('continues', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"continues","execution_id":1,"timestamp_ms":1795126492036,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Continues","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('continues', 1, 2, 'ExternalEventPersistent', '{"event_id":2,"source_event_id":null,"instance_id":"continues","execution_id":1,"timestamp_ms":1795126492036,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"carried","data":"kept"}');
INSERT INTO frozen.history VALUES ('continues', 1, 3, 'KeyValueSet', '{"event_id":3,"source_event_id":null,"instance_id":"continues","execution_id":1,"timestamp_ms":1795126492036,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-1","value":"1","last_updated_at_ms":1795126492036}');
INSERT INTO frozen.history VALUES ('continues', 1, 4, 'OrchestrationContinuedAsNew', '{"event_id":4,"source_event_id":null,"instance_id":"continues","execution_id":1,"timestamp_ms":1795126492036,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"2"}');
INSERT INTO frozen.history VALUES ('continues', 3, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Continues","version":"1.0.0","input":"3","parent_instance":null,"parent_id":null,"carry_forward_events":[["carried","kept"]]}');
INSERT INTO frozen.history VALUES ('continues', 3, 2, 'ExternalEventPersistent', '{"event_id":2,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"carried","data":"kept"}');
INSERT INTO frozen.history VALUES ('continues', 3, 3, 'KeyValueSet', '{"event_id":3,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-3","value":"3","last_updated_at_ms":1795126492054}');
INSERT INTO frozen.history VALUES ('continues', 3, 4, 'KeyValueCleared', '{"event_id":4,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"KeyValueCleared","key":"round-1"}');
INSERT INTO frozen.history VALUES ('continues', 3, 5, 'CustomStatusUpdated', '{"event_id":5,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"round 3"}');
INSERT INTO frozen.history VALUES ('continues', 3, 6, 'ExternalSubscribedPersistent', '{"event_id":6,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"carried"}');
INSERT INTO frozen.history VALUES ('continues', 3, 7, 'ExternalSubscribed', '{"event_id":7,"source_event_id":null,"instance_id":"continues","execution_id":3,"timestamp_ms":1795126492054,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('keeps', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Keeps","version":"1.0.0","input":"value","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('keeps', 1, 2, 'KeyValueSet', '{"event_id":2,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"kept","value":"value","last_updated_at_ms":1795126492060}');
INSERT INTO frozen.history VALUES ('keeps', 1, 3, 'KeyValueSet', '{"event_id":3,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"gone","value":"x","last_updated_at_ms":1795126492060}');
INSERT INTO frozen.history VALUES ('keeps', 1, 4, 'KeyValueCleared', '{"event_id":4,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"KeyValueCleared","key":"gone"}');
INSERT INTO frozen.history VALUES ('keeps', 1, 5, 'CustomStatusUpdated', '{"event_id":5,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"keeps"}');
INSERT INTO frozen.history VALUES ('keeps', 1, 6, 'ExternalSubscribed', '{"event_id":6,"source_event_id":null,"instance_id":"keeps","execution_id":1,"timestamp_ms":1795126492060,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('races', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492076,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Races","version":"1.0.0","input":"race","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('races', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492076,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"race"}');
INSERT INTO frozen.history VALUES ('races', 1, 3, 'TimerCreated', '{"event_id":3,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492076,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":3371926492076}');
INSERT INTO frozen.history VALUES ('races', 1, 4, 'ActivityCompleted', '{"event_id":4,"source_event_id":2,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492085,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did race"}');
INSERT INTO frozen.history VALUES ('continues', 2, 2, 'ExternalEventPersistent', '{"event_id":2,"source_event_id":null,"instance_id":"continues","execution_id":2,"timestamp_ms":1795126492048,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"carried","data":"kept"}');
INSERT INTO frozen.history VALUES ('continues', 2, 3, 'KeyValueSet', '{"event_id":3,"source_event_id":null,"instance_id":"continues","execution_id":2,"timestamp_ms":1795126492048,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-2","value":"2","last_updated_at_ms":1795126492048}');
INSERT INTO frozen.history VALUES ('continues', 2, 4, 'OrchestrationContinuedAsNew', '{"event_id":4,"source_event_id":null,"instance_id":"continues","execution_id":2,"timestamp_ms":1795126492048,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"3"}');
INSERT INTO frozen.history VALUES ('undoes', 1, 4, 'OrchestrationCancelRequested', '{"event_id":4,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492115,"duroxide_version":"0.1.32","type":"OrchestrationCancelRequested","reason":"no longer needed"}');
INSERT INTO frozen.history VALUES ('undoes', 1, 5, 'TimerCreated', '{"event_id":5,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492115,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":4948726492115}');
INSERT INTO frozen.history VALUES ('undoes', 1, 6, 'ActivityScheduled', '{"event_id":6,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492115,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Undo","input":"undone","tag":"later"}');
INSERT INTO frozen.history VALUES ('undoes', 1, 7, 'ExternalSubscribedCancelled', '{"event_id":7,"source_event_id":3,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492115,"duroxide_version":"0.1.32","type":"ExternalSubscribedCancelled","reason":"dropped_future"}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 4, 'OrchestrationCancelRequested', '{"event_id":4,"source_event_id":null,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126492120,"duroxide_version":"0.1.32","type":"OrchestrationCancelRequested","reason":"no longer needed"}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 5, 'ExternalSubscribedCancelled', '{"event_id":5,"source_event_id":3,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126492120,"duroxide_version":"0.1.32","type":"ExternalSubscribedCancelled","reason":"orchestration_terminal"}');
INSERT INTO frozen.history VALUES ('cancelled', 1, 6, 'OrchestrationFailed', '{"event_id":6,"source_event_id":null,"instance_id":"cancelled","execution_id":1,"timestamp_ms":1795126492120,"duroxide_version":"0.1.32","type":"OrchestrationFailed","details":{"Application":{"kind":{"Cancelled":{"reason":"no longer needed"}},"message":"","retryable":false}}}');
INSERT INTO frozen.history VALUES ('leased', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"leased","execution_id":1,"timestamp_ms":1795126492150,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"leased","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('leased', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"leased","execution_id":1,"timestamp_ms":1795126492150,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"leased"}');
INSERT INTO frozen.history VALUES ('noted', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"noted","execution_id":1,"timestamp_ms":1795126492156,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"noted","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('noted', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"noted","execution_id":1,"timestamp_ms":1795126492156,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"noted"}');
INSERT INTO frozen.history VALUES ('session-leased', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"session-leased","execution_id":1,"timestamp_ms":1795126492165,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"session one","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('session-leased', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"session-leased","execution_id":1,"timestamp_ms":1795126492165,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"session one","session_id":"one"}');
INSERT INTO frozen.history VALUES ('session', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"session","execution_id":1,"timestamp_ms":1795126492169,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"session two","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('session', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"session","execution_id":1,"timestamp_ms":1795126492169,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"session two","session_id":"two"}');
INSERT INTO frozen.history VALUES ('queued', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"queued","execution_id":1,"timestamp_ms":1795126492171,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"queued","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('queued', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"queued","execution_id":1,"timestamp_ms":1795126492171,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"queued"}');
INSERT INTO frozen.history VALUES ('sleeps', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"sleeps","execution_id":1,"timestamp_ms":1795126492176,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Sleeps","version":"1.0.0","input":"20","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('sleeps', 1, 2, 'TimerCreated', '{"event_id":2,"source_event_id":null,"instance_id":"sleeps","execution_id":1,"timestamp_ms":1795126492176,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":1795126512176}');
INSERT INTO frozen.history VALUES ('races', 1, 5, 'CustomStatusUpdated', '{"event_id":5,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492085,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"races"}');
INSERT INTO frozen.history VALUES ('races', 1, 6, 'ExternalSubscribed', '{"event_id":6,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492085,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('races', 1, 7, 'TimerCreated', '{"event_id":7,"source_event_id":null,"instance_id":"races","execution_id":1,"timestamp_ms":1795126492085,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":3371926492085}');
INSERT INTO frozen.history VALUES ('undoes', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492091,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Undoes","version":"1.0.0","input":"null","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('undoes', 1, 2, 'CustomStatusUpdated', '{"event_id":2,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492091,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits"}');
INSERT INTO frozen.history VALUES ('undoes', 1, 3, 'ExternalSubscribed', '{"event_id":3,"source_event_id":null,"instance_id":"undoes","execution_id":1,"timestamp_ms":1795126492091,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}');
INSERT INTO frozen.history VALUES ('forked', 1, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"forked","execution_id":1,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Steps","version":"1.0.0","input":"reset","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('forked', 1, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"forked","execution_id":1,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"reset 1"}');
INSERT INTO frozen.history VALUES ('forked', 1, 3, 'ActivityCompleted', '{"event_id":3,"source_event_id":2,"instance_id":"forked","execution_id":1,"timestamp_ms":1795126491866,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did reset 1"}');
INSERT INTO frozen.history VALUES ('reset', 1, 8, 'OrchestrationContinuedAsNew', '{"event_id":8,"source_event_id":null,"instance_id":"reset","execution_id":1,"timestamp_ms":1795126493320,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"reset"}');
INSERT INTO frozen.history VALUES ('reset', 2, 1, 'OrchestrationStarted', '{"event_id":1,"source_event_id":null,"instance_id":"reset","execution_id":2,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Steps","version":"1.0.0","input":"reset","parent_instance":null,"parent_id":null}');
INSERT INTO frozen.history VALUES ('reset', 2, 2, 'ActivityScheduled', '{"event_id":2,"source_event_id":null,"instance_id":"reset","execution_id":2,"timestamp_ms":1795126491824,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"reset 1"}');
INSERT INTO frozen.history VALUES ('reset', 2, 3, 'ActivityCompleted', '{"event_id":3,"source_event_id":2,"instance_id":"reset","execution_id":2,"timestamp_ms":1795126491866,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"did reset 1"}');

INSERT INTO frozen.holds VALUES ('parked', 'parked', 'build Broken', 'the code of the orchestration panicked: the error output of the runtime''s process has the message', 1795126492158, NULL);
INSERT INTO frozen.holds VALUES ('held', 'paused', 'ann', 'look', 1795126492208, NULL);
INSERT INTO frozen.holds VALUES ('paused', 'orchestration-paused', 'ann', 'deploy', 1795126493229, NULL);

INSERT INTO frozen.instance_locks VALUES ('parked', '\x', 9223372036854775807, 1795126492150, true, NULL);
INSERT INTO frozen.instance_locks VALUES ('turn', '\xe8017e8b9f773f43da0bc5c0f1df887f', 1795126493199, 1795126492199, false, NULL);
INSERT INTO frozen.instance_locks VALUES ('held', '\x', 9223372036854775807, 1795126492208, true, NULL);
INSERT INTO frozen.instance_locks VALUES ('paused', '\x', 9223372036854775807, 1795126493229, true, NULL);

INSERT INTO frozen.instances VALUES ('done', 1, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126491735, 1795126491735);
INSERT INTO frozen.instances VALUES ('failed', 2, 'Fails', '1.0.0', 1, NULL, NULL, 0, 1795126491735, 1795126491735);
INSERT INTO frozen.instances VALUES ('cancelled', 3, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491785, 1795126491785);
INSERT INTO frozen.instances VALUES ('waits', 4, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491806, 1795126491806);
INSERT INTO frozen.instances VALUES ('held', 5, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491826, 1795126491826);
INSERT INTO frozen.instances VALUES ('paused', 6, 'Pauses', '1.0.0', 1, NULL, 'waits', 1, 1795126491833, 1795126491833);
INSERT INTO frozen.instances VALUES ('parked', 7, 'Parks', '1.0.0', 1, NULL, 'waits', 1, 1795126491841, 1795126491841);
INSERT INTO frozen.instances VALUES ('damaged', 8, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491849, 1795126491849);
INSERT INTO frozen.instances VALUES ('turn', 9, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491852, 1795126491852);
INSERT INTO frozen.instances VALUES ('detaches', 11, 'Detaches', '1.0.0', 1, NULL, 'waits', 1, 1795126491889, 1795126491889);
INSERT INTO frozen.instances VALUES ('detached-works', 13, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126491921, 1795126491921);
INSERT INTO frozen.instances VALUES ('detached', 12, 'Waits', '1.0.0', 1, NULL, 'waits', 1, 1795126491921, 1795126491921);
INSERT INTO frozen.instances VALUES ('parent', 14, 'Parent', '1.0.0', 1, NULL, NULL, 0, 1795126491929, 1795126491929);
INSERT INTO frozen.instances VALUES ('the-child', 15, 'Waits', '1.0.0', 1, 'parent', 'waits', 1, 1795126491942, 1795126491942);
INSERT INTO frozen.instances VALUES ('tagged', 16, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126491953, 1795126491953);
INSERT INTO frozen.instances VALUES ('reads', 17, 'Reads', '1.0.0', 1, NULL, 'read 1', 2, 1795126491962, 1795126491962);
INSERT INTO frozen.instances VALUES ('once', 18, 'Reads', '1.0.0', 1, NULL, 'read 0', 1, 1795126492030, 1795126492030);
INSERT INTO frozen.instances VALUES ('continues', 19, 'Continues', '1.0.0', 3, NULL, 'round 3', 1, 1795126492047, 1795126492060);
INSERT INTO frozen.instances VALUES ('keeps', 22, 'Keeps', '1.0.0', 1, NULL, 'keeps', 1, 1795126492068, 1795126492068);
INSERT INTO frozen.instances VALUES ('races', 23, 'Races', '1.0.0', 1, NULL, 'races', 1, 1795126492085, 1795126492085);
INSERT INTO frozen.instances VALUES ('undoes', 24, 'Undoes', '1.0.0', 1, NULL, 'waits', 1, 1795126492097, 1795126492097);
INSERT INTO frozen.instances VALUES ('leased', 25, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126492155, 1795126492155);
INSERT INTO frozen.instances VALUES ('noted', 26, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126492160, 1795126492160);
INSERT INTO frozen.instances VALUES ('session-leased', 27, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126492168, 1795126492168);
INSERT INTO frozen.instances VALUES ('session', 28, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126492173, 1795126492173);
INSERT INTO frozen.instances VALUES ('queued', 29, 'Works', '1.0.0', 1, NULL, NULL, 0, 1795126492175, 1795126492175);
INSERT INTO frozen.instances VALUES ('sleeps', 30, 'Sleeps', '1.0.0', 1, NULL, NULL, 0, 1795126492180, 1795126492180);
INSERT INTO frozen.instances VALUES ('forked', 31, 'Steps', '1.0.0', 1, NULL, NULL, 1, 1795126493307, 1795126493307);
INSERT INTO frozen.instances VALUES ('reset', 10, 'Steps', '1.0.0', 2, NULL, NULL, 2, 1795126491866, 1795126493323);

INSERT INTO frozen.kv_delta VALUES ('continues', 'round-1', NULL, 1795126492060);
INSERT INTO frozen.kv_delta VALUES ('continues', 'round-3', '3', 1795126492054);
INSERT INTO frozen.kv_delta VALUES ('keeps', 'gone', NULL, 1795126492068);
INSERT INTO frozen.kv_delta VALUES ('keeps', 'kept', 'value', 1795126492060);

INSERT INTO frozen.kv_store VALUES ('continues', 'round-1', '1', 1795126492036);
INSERT INTO frozen.kv_store VALUES ('continues', 'round-2', '2', 1795126492048);

INSERT INTO frozen.message_keys VALUES ('once', 'key 1', 1795126493270);

INSERT INTO frozen.orchestrator_queue VALUES (17, 'undoes', '{"TimerFired":{"instance":"undoes","execution_id":1,"id":5,"fire_at_ms":4948726492115}}', 4948726492115, 4948726492115, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (18, 'parked', '{"ExternalRaised":{"instance":"parked","name":"go","data":"on"}}', 1795126492126, 1795126492126, NULL, 0, false, true, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (20, 'sleeps', '{"TimerFired":{"instance":"sleeps","execution_id":1,"id":2,"fire_at_ms":1795126512176}}', 1795126512176, 1795126512176, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (21, 'turn', '{"ExternalRaised":{"instance":"turn","name":"go","data":"now"}}', 1795126492198, 1795126492198, '\xe8017e8b9f773f43da0bc5c0f1df887f', 1, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (22, 'held', '{"ExternalRaised":{"instance":"held","name":"go","data":"kept"}}', 1795126492216, 1795126492216, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (23, 'paused', '{"ExternalRaised":{"instance":"paused","name":"go","data":"kept"}}', 1795126493250, 1795126493250, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (24, 'paused-start', '{"StartOrchestration":{"instance":"paused-start","orchestration":"Pauses","input":"paused-start","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}', 1795126493251, 1795126493251, NULL, 0, true, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (25, 'reads', '{"QueueMessage":{"instance":"reads","name":"q","data":"second"}}', 1795126493254, 1795126493254, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (26, 'reads', '{"QueueMessage":{"instance":"reads","name":"q","data":"a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text a long text "}}', 1795126493256, 1795126493256, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (30, 'begins', '{"StartOrchestration":{"instance":"begins","orchestration":"Works","input":"begins","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}', 1795126493329, 1795126493329, NULL, 0, true, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (31, 'delayed', '{"StartOrchestration":{"instance":"delayed","orchestration":"Works","input":"delayed","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}', 1795126513337, 1795126513337, NULL, 0, true, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (13, 'races', '{"TimerFired":{"instance":"races","execution_id":1,"id":3,"fire_at_ms":3371926492076}}', 3371926492076, 3371926492076, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (14, 'races', '{"TimerFired":{"instance":"races","execution_id":1,"id":7,"fire_at_ms":3371926492085}}', 3371926492085, 3371926492085, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (27, 'once', '{"QueueMessage":{"instance":"once","name":"q","data":"first"}}', 1795126493270, 1795126493270, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (28, 'forked', '{"TimerFired":{"instance":"forked","execution_id":0,"id":0,"fire_at_ms":0}}', 1795126493307, 1795126493307, NULL, 0, false, false, NULL);
INSERT INTO frozen.orchestrator_queue VALUES (29, 'reset', '{"TimerFired":{"instance":"reset","execution_id":0,"id":0,"fire_at_ms":0}}', 1795126493323, 1795126493323, NULL, 0, false, false, NULL);

INSERT INTO frozen.outlast_migrations VALUES (1, 'initial', 'b5b82ba1d47fb7849054f1fd263aafa7bd8edb8b3875169fb5be159a452ecc96', 1, '2026-11-19 22:14:51.639558+00');

INSERT INTO frozen.paused_orchestrations VALUES ('Pauses', 'ann', 'deploy', 1795126492217);

INSERT INTO frozen.sessions VALUES ('one', 'dead worker', 1795126493187, 1795126492187, '\xe8017e8b9f773f43');

INSERT INTO frozen.worker_queue VALUES (4, '{"ActivityExecute":{"instance":"detached-works","execution_id":1,"id":2,"name":"Work","input":"tag later detaches","tag":"later detaches"}}', 1795126491921, NULL, NULL, 0, 'detached-works', 1, 2, NULL, 'later detaches', false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (5, '{"ActivityExecute":{"instance":"tagged","execution_id":1,"id":2,"name":"Work","input":"tag later","tag":"later"}}', 1795126491953, NULL, NULL, 0, 'tagged', 1, 2, NULL, 'later', false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (7, '{"ActivityExecute":{"instance":"undoes","execution_id":1,"id":6,"name":"Undo","input":"undone","tag":"later"}}', 1795126492120, NULL, NULL, 0, 'undoes', 1, 6, NULL, 'later', false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (11, '{"ActivityExecute":{"instance":"session","execution_id":1,"id":2,"name":"Work","input":"session two","session_id":"two"}}', 1795126492173, NULL, NULL, 0, 'session', 1, 2, 'two', NULL, false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (12, '{"ActivityExecute":{"instance":"queued","execution_id":1,"id":2,"name":"Work","input":"queued"}}', 1795126492175, NULL, NULL, 0, 'queued', 1, 2, NULL, NULL, false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (8, '{"ActivityExecute":{"instance":"leased","execution_id":1,"id":2,"name":"Work","input":"leased"}}', 1795126492155, '\xe8017e8b9f773f432d21581840e198ca', 1795126493183, 1, 'leased', 1, 2, NULL, NULL, false, 0, NULL);
INSERT INTO frozen.worker_queue VALUES (9, '{"ActivityExecute":{"instance":"noted","execution_id":1,"id":2,"name":"Work","input":"noted"}}', 1795126512185, NULL, NULL, 0, 'noted', 1, 2, NULL, NULL, true, 1, 'the service is down');
INSERT INTO frozen.worker_queue VALUES (10, '{"ActivityExecute":{"instance":"session-leased","execution_id":1,"id":2,"name":"Work","input":"session one","session_id":"one"}}', 1795126492168, '\xe8017e8b9f773f43b920227d4d5fb988', 1795126493188, 1, 'session-leased', 1, 2, 'one', NULL, false, 0, NULL);

SELECT pg_catalog.setval('frozen.audit_id_seq', 6, true);

SELECT pg_catalog.setval('frozen.dead_letters_id_seq', 1, true);

SELECT pg_catalog.setval('frozen.instances_created_as_seq', 32, true);

SELECT pg_catalog.setval('frozen.orchestrator_queue_id_seq', 31, true);

SELECT pg_catalog.setval('frozen.worker_queue_id_seq', 12, true);

ALTER TABLE ONLY frozen.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frozen.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frozen.executions
    ADD CONSTRAINT executions_pkey PRIMARY KEY (instance_id, execution_id);

ALTER TABLE ONLY frozen.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (instance_id, execution_id, event_id);

ALTER TABLE ONLY frozen.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY frozen.instance_locks
    ADD CONSTRAINT instance_locks_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY frozen.instances
    ADD CONSTRAINT instances_pkey PRIMARY KEY (instance_id);

ALTER TABLE ONLY frozen.kv_delta
    ADD CONSTRAINT kv_delta_pkey PRIMARY KEY (instance_id, key);

ALTER TABLE ONLY frozen.kv_store
    ADD CONSTRAINT kv_store_pkey PRIMARY KEY (instance_id, key);

ALTER TABLE ONLY frozen.listeners
    ADD CONSTRAINT listeners_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frozen.message_keys
    ADD CONSTRAINT message_keys_pkey PRIMARY KEY (instance_id, key);

ALTER TABLE ONLY frozen.nodes
    ADD CONSTRAINT nodes_pkey PRIMARY KEY (node_id);

ALTER TABLE ONLY frozen.orchestrator_queue
    ADD CONSTRAINT orchestrator_queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY frozen.outlast_migrations
    ADD CONSTRAINT outlast_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY frozen.owners
    ADD CONSTRAINT owners_pkey PRIMARY KEY (owner);

ALTER TABLE ONLY frozen.paused_orchestrations
    ADD CONSTRAINT paused_orchestrations_pkey PRIMARY KEY (orchestration);

ALTER TABLE ONLY frozen.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (session_id);

ALTER TABLE ONLY frozen.worker_queue
    ADD CONSTRAINT worker_queue_pkey PRIMARY KEY (id);

CREATE INDEX executions_attention ON frozen.executions USING btree (status, started_at) WHERE (status = ANY (ARRAY['Running'::text, 'Failed'::text]));

CREATE INDEX instance_locks_by_end ON frozen.instance_locks USING btree (locked_until);

CREATE UNIQUE INDEX instances_by_creation ON frozen.instances USING btree (created_as);

CREATE INDEX instances_by_parent ON frozen.instances USING btree (parent_instance_id) WHERE (parent_instance_id IS NOT NULL);

CREATE INDEX orchestrator_queue_begins ON frozen.orchestrator_queue USING btree (((instance_id || ''::text))) WHERE begins;

CREATE INDEX orchestrator_queue_by_instance ON frozen.orchestrator_queue USING btree (instance_id, visible_at, id);

CREATE INDEX orchestrator_queue_pushed_back ON frozen.orchestrator_queue USING btree (((instance_id || ''::text))) WHERE (visible_at > available_at);

CREATE INDEX orchestrator_queue_ready ON frozen.orchestrator_queue USING btree (((visible_at + 0)), id) WHERE (NOT is_aside);

CREATE INDEX worker_queue_by_activity ON frozen.worker_queue USING btree (instance_id, execution_id, activity_id);

CREATE INDEX worker_queue_by_session ON frozen.worker_queue USING btree (session_id) WHERE (session_id IS NOT NULL);

CREATE INDEX worker_queue_delayed ON frozen.worker_queue USING btree (visible_at) WHERE delayed;

CREATE INDEX worker_queue_leased ON frozen.worker_queue USING btree (locked_until) WHERE (lock_token IS NOT NULL);

CREATE INDEX worker_queue_ready ON frozen.worker_queue USING btree (COALESCE(('='::text || tag), ''::text), id) WHERE ((lock_token IS NULL) AND (session_id IS NULL));

CREATE INDEX worker_queue_ready_in_session ON frozen.worker_queue USING btree (session_id, id) WHERE ((lock_token IS NULL) AND (session_id IS NOT NULL));

CREATE TRIGGER orchestrator_queue_cancels AFTER INSERT ON frozen.orchestrator_queue FOR EACH ROW WHEN (starts_with(new.work_item, '{"CancelInstance"'::text)) EXECUTE FUNCTION frozen.release_cancelled_1();
