-- What a batch does, one function per kind of request, each for any number of members. Plans are kept by the server, so that
-- no statement has to be prepared by the client.
--
-- A plan that was made when a table was known to be empty is kept when it is not, and it would read all of a table for a few
-- rows. So every statement leaves one way only. Sequential and bitmap scans are off: these read all before they sort. A join is
-- written as key = ANY (ARRAY[other]), for which there is nothing but a lookup of one key after the other: for =, or for an
-- ORDER BY that key, a whole index can be read. A subquery with LIMIT or OFFSET is not made a join.
--
-- The number in a name is the version of the function. A released one is never changed: two releases share one database while
-- one replaces the other.

-- The time of the store.
CREATE FUNCTION {schema}.now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT floor(date_part('epoch', clock_timestamp()) * 1000)::bigint $$;

-- Whether a text can be a message or an activity. One that cannot be counts for nothing until it is set aside.
CREATE FUNCTION {schema}.is_item_1(p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$ SELECT p_text LIKE '{"%}}' $$;

-- Takes leases of instances that begin now, for those who wait for turns: where nothing is there yet, no message and no lease. To be
-- called before the messages are stored, those of the secrets that it says with theirs.
--
-- Nothing is waited for. The lock that fetches take too comes first: what follows sees every lease, and nobody else takes one.
CREATE FUNCTION {schema}.lease_new_1(p_instance text[], p_secret bytea[], p_lock_ms bigint[]) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_now    bigint := {schema}.now_ms();
    v_free   integer[];
    v_leased bytea[];
BEGIN
    SELECT array_agg(m.n::integer) INTO v_free FROM unnest(p_instance, p_secret) WITH ORDINALITY AS m (instance_id, secret, n)
    WHERE m.secret IS NOT NULL AND pg_try_advisory_xact_lock(hashtextextended(m.instance_id, {seed}));
    IF v_free IS NOT NULL THEN
        WITH leased AS (
            INSERT INTO {schema}.instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT p_instance[m.n], p_secret[m.n], v_now + p_lock_ms[m.n], v_now FROM unnest(v_free) AS m (n)
            WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_instance[m.n] OFFSET 0)
            ON CONFLICT (instance_id) DO NOTHING
            RETURNING l.lock_token
        )
        SELECT array_agg(l.lock_token) INTO v_leased FROM leased AS l;
    END IF;
    RETURN coalesce(v_leased, '{}');
END $$;

-- Notes that sessions are used. Sessions are locked in one order by everybody.
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

-- Sessions that free work waits for, found by skipping from one to the next, and who holds them.
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

-- Commits turns and completes activities.
--
-- A member is one of: 0, a turn under its lease; 1, an activity with or without its outcome; 2, an activity with the turn that
-- its outcome leads to, run ahead. Its answer: 0, refused; 1, done; 2, done, but the outcome of an activity waits for a turn.
-- A refused member writes nothing. o_more: messages wait for the instance of a turn. Everything else that goes wrong is an error and undoes the batch.
--
-- An activity with a secret is stored as leased to somebody who waits for it: a row without a member tells its id. Its lease begins
-- when it is stored, since somebody may have had to be waited for.
CREATE FUNCTION {schema}.commit_1(
    p_member integer[], p_kind integer[], p_instance text[], p_secret bytea[], p_work_id bigint[], p_messages integer[],
    p_completion text[], p_after bigint[], p_ran_at bigint[],
    p_execution bigint[], p_name text[], p_version text[], p_parent text[], p_raises boolean[],
    p_status text[], p_output text[], p_ended boolean[], p_last_event bigint[], p_terminal bigint[], p_pin text[], p_pin_key text[],
    p_sets_status boolean[], p_custom_status text[], p_clears boolean[],
    h_member integer[], h_event bigint[], h_type text[], h_data text[],
    w_member integer[], w_item text[], w_instance text[], w_execution bigint[], w_activity bigint[], w_session text[], w_tag text[],
    w_secret bytea[], w_lock_ms bigint[],
    c_member integer[], c_instance text[], c_execution bigint[], c_activity bigint[],
    m_member integer[], m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[],
    k_member integer[], k_key text[], k_value text[], k_at bigint[]
) RETURNS TABLE (
    o_member integer, o_answer integer, o_at bigint, o_more boolean, o_id bigint, o_secret bytea, o_name text, o_version text
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now      bigint := {schema}.now_ms();
    v_seen     bigint;
    v_none     boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_passed   boolean[] := v_none;
    -- Whose turn is written.
    v_turn     boolean[] := v_none;
    v_members  integer[];
    v_sessions text[];
    v_names    text[];
    v_count    integer;
    v_wanted   integer;
    v_one      integer;
BEGIN
    -- Activities: each is fenced by its row.
    IF 1 = ANY (p_kind) OR 2 = ANY (p_kind) THEN
        WITH done AS (
            DELETE FROM {schema}.worker_queue AS q
            USING unnest(p_member, p_kind, p_work_id, p_secret) AS m (member, kind, id, secret)
            WHERE m.kind > 0 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
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
    -- Turns that were run ahead: taken if nothing else happens to the instance. The lock keeps fetches of it out, which lock
    -- the same row after they have taken their lease; what follows sees theirs.
    IF 2 = ANY (p_kind) THEN
        PERFORM 1 FROM {schema}.executions AS e
        JOIN unnest(p_member, p_kind, p_instance, p_execution) AS m (member, kind, instance_id, execution_id)
            ON m.kind = 2 AND e.instance_id = ANY (ARRAY[m.instance_id]) AND e.execution_id = m.execution_id
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
            WHERE m.kind = 2 AND v_passed[m.member] AND m.ran_at BETWEEN v_now - 60000 AND v_now
                AND e.status = 'Running' AND e.last_event_id = m.after
                AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = m.instance_id OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                WHERE q.instance_id = m.instance_id AND q.visible_at <= v_now OFFSET 0)
            ORDER BY m.instance_id, m.member
        ) AS u;
        FOREACH v_one IN ARRAY coalesce(v_members, '{}') LOOP v_turn[v_one] := true; END LOOP;
    END IF;
    -- Turns under a lease: each is fenced by it. After the turns ahead, which must see these leases.
    IF 0 = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM {schema}.instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret) AS m (member, kind, instance_id, secret)
            WHERE m.kind = 0 AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
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
            WHERE m.kind = 0 AND v_turn[m.member]
                AND q.instance_id = ANY (ARRAY[m.instance_id]) AND q.lock_token = m.secret
            RETURNING m.member
        )
        -- Turns with others than they fetched, and those with none of them.
        SELECT count(*) FILTER (WHERE t.messages <> p_messages[t.member])
               + v_wanted - count(*) FILTER (WHERE p_messages[t.member] > 0)
        INTO v_count FROM (SELECT c.member, count(*) AS messages FROM consumed AS c GROUP BY c.member) AS t;
        IF v_count <> 0 THEN
            RAISE EXCEPTION 'consuming messages: % turns have others than they fetched', v_count USING ERRCODE = 'OL001';
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
        IF cardinality(w_member) > 0 THEN
            RETURN QUERY
            WITH stored AS (
                INSERT INTO {schema}.worker_queue
                    (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
                SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag,
                       w.secret, CASE WHEN w.secret IS NOT NULL THEN {schema}.now_ms() + w.lock_ms END, (w.secret IS NOT NULL)::integer
                FROM unnest(w_member, w_item, w_instance, w_execution, w_activity, w_session, w_tag, w_secret, w_lock_ms)
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

    -- Outcomes that no turn has taken.
    IF cardinality(array_positions(v_passed, true)) > v_wanted THEN
        INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
        SELECT m.instance_id, m.completion, v_now, v_now, false, m.secret
        FROM unnest(p_member, p_kind, p_instance, p_completion, p_secret) AS m (member, kind, instance_id, completion, secret)
        WHERE m.kind > 0 AND v_passed[m.member] AND NOT v_turn[m.member] AND m.completion IS NOT NULL
        ORDER BY m.member;
    END IF;

    -- What has come meanwhile counts.
    v_seen := greatest(v_now, {schema}.now_ms());
    RETURN QUERY SELECT m.member,
        CASE WHEN NOT v_passed[m.member] THEN 0 WHEN m.kind = 2 AND NOT v_turn[m.member] THEN 2 ELSE 1 END, v_now,
        m.kind <> 1 AND EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                WHERE q.instance_id = m.instance_id AND q.visible_at <= v_seen OFFSET 0),
        NULL::bigint, NULL::bytea, NULL::text, NULL::text
    FROM unnest(p_member, p_kind, p_instance) AS m (member, kind, instance_id);
END $$;

-- The same for a batch of one, without what it takes to handle many: most of the time of a lone commit would go to that. What it
-- does and in which order is what commit_1 does. It leases one activity at most, and only if there is no other.
CREATE FUNCTION {schema}.commit_alone_1(
    p_member integer[], p_kind integer[], p_instance text[], p_secret bytea[], p_work_id bigint[], p_messages integer[],
    p_completion text[], p_after bigint[], p_ran_at bigint[],
    p_execution bigint[], p_name text[], p_version text[], p_parent text[], p_raises boolean[],
    p_status text[], p_output text[], p_ended boolean[], p_last_event bigint[], p_terminal bigint[], p_pin text[], p_pin_key text[],
    p_sets_status boolean[], p_custom_status text[], p_clears boolean[],
    h_member integer[], h_event bigint[], h_type text[], h_data text[],
    w_member integer[], w_item text[], w_instance text[], w_execution bigint[], w_activity bigint[], w_session text[], w_tag text[],
    w_secret bytea[], w_lock_ms bigint[],
    c_member integer[], c_instance text[], c_execution bigint[], c_activity bigint[],
    m_member integer[], m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[],
    k_member integer[], k_key text[], k_value text[], k_at bigint[],
    OUT o_member integer, OUT o_answer integer, OUT o_at bigint, OUT o_more boolean, OUT o_id bigint, OUT o_secret bytea,
    OUT o_name text, OUT o_version text
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now       bigint := {schema}.now_ms();
    v_kind      integer := p_kind[1];
    v_instance  text := p_instance[1];
    v_secret    bytea := p_secret[1];
    v_execution bigint := p_execution[1];
    v_status    text := p_status[1];
    v_name      text := p_name[1];
    v_version   text := p_version[1];
    v_ended     boolean := p_ended[1];
    v_turn      boolean := false;
    v_session   text;
    v_stands    record;
    v_count     integer;
BEGIN
    o_member := 1;
    o_answer := 0;
    IF v_kind > 0 THEN
        DELETE FROM {schema}.worker_queue AS q
        WHERE q.id = p_work_id[1] AND q.lock_token = v_secret AND q.locked_until > {schema}.now_ms()
        RETURNING q.session_id INTO v_session;
        IF FOUND THEN
            o_answer := 1;
            IF v_session IS NOT NULL THEN
                UPDATE {schema}.sessions AS s SET last_activity_at = v_now
                WHERE s.session_id = v_session AND s.locked_until > v_now;
            END IF;
        END IF;
        IF v_kind = 2 AND o_answer = 1 THEN
            -- The lock keeps fetches of the instance out, which lock the same row after they have taken their lease; what
            -- follows sees theirs.
            SELECT e.status, e.last_event_id INTO v_stands FROM {schema}.executions AS e
            WHERE e.instance_id = v_instance AND e.execution_id = v_execution FOR UPDATE;
            v_turn := FOUND AND v_stands.status = 'Running' AND v_stands.last_event_id = p_after[1];
            v_now := {schema}.now_ms();
            v_turn := v_turn AND p_ran_at[1] BETWEEN v_now - 60000 AND v_now
                AND EXISTS (SELECT 1 FROM {schema}.instances AS i
                            WHERE i.instance_id = v_instance AND i.current_execution_id = v_execution)
                AND NOT EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = v_instance)
                AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                WHERE q.instance_id = v_instance AND q.visible_at <= v_now);
            IF NOT v_turn THEN
                o_answer := 2;
            END IF;
        END IF;
    ELSE
        DELETE FROM {schema}.instance_locks AS l
        WHERE l.instance_id = v_instance AND l.lock_token = v_secret AND l.locked_until > {schema}.now_ms();
        IF FOUND THEN
            o_answer := 1;
            v_turn := true;
            DELETE FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.lock_token = v_secret;
            GET DIAGNOSTICS v_count = ROW_COUNT;
            IF v_count <> p_messages[1] THEN
                RAISE EXCEPTION 'consuming messages: % instead of the % that were fetched', v_count, p_messages[1]
                USING ERRCODE = 'OL001';
            END IF;
        END IF;
    END IF;

    IF v_turn THEN
        IF v_name IS NOT NULL AND v_version IS NOT NULL THEN
            INSERT INTO {schema}.instances AS i
                (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, created_at, updated_at)
            VALUES (v_instance, v_name, v_version, v_execution, p_parent[1], v_now, v_now)
            ON CONFLICT (instance_id) DO UPDATE
            SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
                current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
                updated_at = excluded.updated_at;
        END IF;
        IF p_raises[1] THEN
            UPDATE {schema}.instances AS i SET current_execution_id = v_execution, updated_at = v_now
            WHERE i.instance_id = v_instance AND i.current_execution_id < v_execution;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'raising executions missed 1 rows' USING ERRCODE = 'OL001';
            END IF;
        END IF;
        UPDATE {schema}.executions AS e
        SET status = coalesce(v_status, e.status),
            output = CASE WHEN v_status IS NULL THEN e.output ELSE p_output[1] END,
            completed_at = CASE WHEN v_status IS NULL THEN e.completed_at WHEN v_ended THEN v_now END,
            updated_at = v_now,
            last_event_id = greatest(e.last_event_id, p_last_event[1]),
            terminal_event_id = coalesce(e.terminal_event_id, p_terminal[1]),
            pinned_version = coalesce(p_pin[1], e.pinned_version),
            pinned_key = coalesce(p_pin_key[1], e.pinned_key)
        WHERE e.instance_id = v_instance AND e.execution_id = v_execution;
        IF NOT FOUND THEN
            INSERT INTO {schema}.executions
                (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id, terminal_event_id,
                 pinned_version, pinned_key)
            VALUES (v_instance, v_execution, coalesce(v_status, 'Running'), CASE WHEN v_status IS NOT NULL THEN p_output[1] END,
                    v_now, CASE WHEN v_ended THEN v_now END, v_now,
                    greatest(p_last_event[1], (SELECT max(h.event_id) FROM {schema}.history AS h
                                               WHERE h.instance_id = v_instance AND h.execution_id = v_execution)),
                    p_terminal[1], p_pin[1], p_pin_key[1]);
        END IF;
        IF cardinality(h_event) > 0 THEN
            INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
            SELECT v_instance, v_execution, h.event_id, h.event_type, h.event_data
            FROM unnest(h_event, h_type, h_data) AS h (event_id, event_type, event_data);
        END IF;
        IF p_sets_status[1] THEN
            UPDATE {schema}.instances AS i
            SET custom_status = p_custom_status[1], custom_status_version = i.custom_status_version + 1
            WHERE i.instance_id = v_instance;
        END IF;
        IF p_clears[1] THEN
            UPDATE {schema}.kv_delta AS d SET value = NULL, last_updated_at_ms = v_now WHERE d.instance_id = v_instance;
            INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
            SELECT s.instance_id, s.key, NULL, v_now FROM {schema}.kv_store AS s WHERE s.instance_id = v_instance
            ON CONFLICT (instance_id, key) DO NOTHING;
        END IF;
        IF cardinality(k_key) > 0 THEN
            INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
            SELECT v_instance, k.key, k.value, coalesce(k.at, v_now) FROM unnest(k_key, k_value, k_at) AS k (key, value, at)
            ON CONFLICT (instance_id, key) DO UPDATE
            SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
        END IF;
        IF v_ended AND EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = v_instance) THEN
            INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at_ms)
            SELECT d.instance_id, d.key, d.value, d.last_updated_at_ms FROM {schema}.kv_delta AS d
            WHERE d.instance_id = v_instance AND d.value IS NOT NULL
            ON CONFLICT (instance_id, key) DO UPDATE
            SET value = excluded.value, last_updated_at_ms = excluded.last_updated_at_ms;
            DELETE FROM {schema}.kv_store AS s USING {schema}.kv_delta AS d
            WHERE s.instance_id = v_instance AND d.instance_id = v_instance AND d.value IS NULL AND s.key = d.key;
            DELETE FROM {schema}.kv_delta AS d WHERE d.instance_id = v_instance;
        END IF;
        IF cardinality(w_item) = 1 THEN
            INSERT INTO {schema}.worker_queue
                (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
            VALUES (w_item[1], v_now, w_instance[1], w_execution[1], w_activity[1], w_session[1], w_tag[1], w_secret[1],
                    CASE WHEN w_secret[1] IS NOT NULL THEN {schema}.now_ms() + w_lock_ms[1] END, (w_secret[1] IS NOT NULL)::integer)
            RETURNING id, lock_token INTO o_id, o_secret;
            IF o_secret IS NOT NULL THEN
                SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version
                FROM {schema}.instances AS i WHERE i.instance_id = w_instance[1];
            END IF;
        ELSIF cardinality(w_item) > 0 THEN
            INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
            SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
            FROM unnest(w_item, w_instance, w_execution, w_activity, w_session, w_tag) WITH ORDINALITY
                AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
            ORDER BY w.n;
        END IF;
        IF cardinality(c_activity) > 0 THEN
            DELETE FROM {schema}.worker_queue AS q
            USING unnest(c_instance, c_execution, c_activity) AS c (instance_id, execution_id, activity_id)
            WHERE q.instance_id = ANY (ARRAY[c.instance_id]) AND q.execution_id = c.execution_id
                AND q.activity_id = c.activity_id;
        END IF;
        IF cardinality(m_item) > 0 THEN
            INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
            SELECT m.instance_id, m.item, greatest(m.not_before, v_now), greatest(m.not_before, v_now), m.begins
            FROM unnest(m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY
                AS m (instance_id, item, not_before, begins, n)
            ORDER BY m.n;
        END IF;
    ELSIF o_answer > 0 AND p_completion[1] IS NOT NULL THEN
        -- An outcome that no turn has taken.
        INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
        VALUES (v_instance, p_completion[1], v_now, v_now, false, v_secret);
    END IF;
    o_at := v_now;
    -- What has come meanwhile counts.
    v_now := greatest(v_now, {schema}.now_ms());
    o_more := v_kind <> 1 AND EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                      WHERE q.instance_id = v_instance AND q.visible_at <= v_now);
END $$;

-- Takes leases of up to as many instances as there are secrets, longest waiting first, and covers their visible messages.
-- Versions are given as ranges of keys; NULL admits all. A last row without an instance is there if there were fewer than
-- wanted, and says when to look again, if that is asked for.
--
-- Fetches that run at once stay out of each other's way by a lock on the instance that nobody waits for. Locking messages
-- instead would not do: two fetches could hold different messages of one instance, and wait for each other's.
--
-- Of one instance it takes at most p_messages messages with at most p_bytes bytes of text, and at least one: the start of a
-- successor, then other starts, then all others, each in their order. o_partial says that visible messages are left.
CREATE FUNCTION {schema}.fetch_turns_1(
    p_secrets bytea[], p_lock_ms bigint, p_lowest text[], p_highest text[], p_asks_next boolean, p_messages bigint, p_bytes bigint)
RETURNS TABLE (
    o_secret bytea, o_instance text, o_name text, o_version text, o_execution bigint, o_last_event bigint, o_created_at bigint,
    o_ended boolean, o_has_history boolean, o_start_due bigint, o_now bigint,
    o_ids bigint[], o_items text[], o_available bigint[], o_attempts integer[], o_next bigint, o_partial boolean
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now     bigint;
    v_begun   bigint := {schema}.now_ms();
    v_wanted  integer := cardinality(p_secrets);
    v_used    integer := 0;
    v_window  integer := v_wanted + 8;
    v_ready   integer;
    v_over    integer;
    -- Instances whose lease is over, if there are any: nearly always there are none.
    v_ended    text[];
    v_ended_at bigint[];
    v_ended_id bigint[];
    v_tried   integer;
    v_taken   text[];
    v_claimed text[] := '{}';
    v_count   integer;
    -- Instances with more messages than a fetch takes, and the messages that it takes; nearly always there are none.
    v_crowded text[];
    v_chosen  bigint[];
    v_plain   text[];
BEGIN
    FOR v_round IN 1..6 LOOP
        v_now := {schema}.now_ms();
        v_over := 0;
        v_ended := NULL;
        v_ended_at := NULL;
        v_ended_id := NULL;
        IF EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.locked_until <= v_now) THEN
            SELECT count(*), array_agg(o.instance_id), array_agg(o.visible_at), array_agg(o.id)
            INTO v_over, v_ended, v_ended_at, v_ended_id
            FROM (
                SELECT l.instance_id, m.visible_at, m.id
                FROM {schema}.instance_locks AS l
                CROSS JOIN LATERAL (SELECT q.visible_at, q.id FROM {schema}.orchestrator_queue AS q
                                    WHERE q.instance_id = l.instance_id AND q.visible_at <= v_now
                                    ORDER BY q.visible_at, q.id LIMIT 1) AS m
                LEFT JOIN LATERAL (SELECT i.current_execution_id FROM {schema}.instances AS i
                                   WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
                LEFT JOIN LATERAL (SELECT e.pinned_key FROM {schema}.executions AS e
                                   WHERE e.instance_id = l.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
                WHERE l.locked_until <= v_now
                    AND (p_lowest IS NULL OR e.pinned_key IS NULL OR EXISTS (
                        SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                        WHERE e.pinned_key BETWEEN r.lowest AND r.highest))
                ORDER BY l.locked_until LIMIT v_window
            ) AS o;
        END IF;
        WITH ready AS MATERIALIZED (
            -- Each instance once, by its first message. What tells most comes first.
            SELECT q.instance_id, q.visible_at, q.id
            FROM {schema}.orchestrator_queue AS q
            WHERE q.lock_token IS NULL AND q.visible_at + 0 <= v_now AND CASE
                WHEN (SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id) > v_now THEN false
                WHEN EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS f
                             WHERE f.instance_id = q.instance_id AND f.visible_at <= q.visible_at
                                 AND (f.visible_at < q.visible_at OR f.id < q.id) AND coalesce(f.lock_token, '') = '' OFFSET 0) THEN false
                WHEN p_lowest IS NULL THEN true
                ELSE coalesce((
                    SELECT e.pinned_key IS NULL OR EXISTS (
                        SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                        WHERE e.pinned_key BETWEEN r.lowest AND r.highest)
                    FROM {schema}.instances AS i
                    JOIN {schema}.executions AS e
                        ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
                    WHERE i.instance_id = q.instance_id), true) END
            ORDER BY q.visible_at + 0, q.id LIMIT v_window
        ), line AS MATERIALIZED (
            SELECT a.instance_id
            FROM (SELECT r.* FROM ready AS r WHERE v_ended IS NULL OR r.instance_id <> ALL (v_ended)
                  UNION ALL SELECT o.* FROM unnest(v_ended, v_ended_at, v_ended_id) AS o) AS a (instance_id, visible_at, id)
            ORDER BY a.visible_at, a.id
        ), free AS MATERIALIZED (
            SELECT n.instance_id FROM line AS n
            WHERE pg_try_advisory_xact_lock(hashtextextended(n.instance_id, {seed}))
            LIMIT v_wanted - v_used
        ), leased AS (
            INSERT INTO {schema}.instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT f.instance_id, p_secrets[v_used + (row_number() OVER ())::integer], v_now + p_lock_ms, v_now FROM free AS f
            ON CONFLICT (instance_id) DO UPDATE
            SET lock_token = excluded.lock_token, locked_until = excluded.locked_until, locked_at = excluded.locked_at
            WHERE l.locked_until <= {schema}.now_ms()
            RETURNING l.instance_id
        )
        SELECT (SELECT count(*) FROM ready), (SELECT count(*) FROM free),
               (SELECT array_agg(t.instance_id ORDER BY t.instance_id) FROM leased AS t)
        INTO v_ready, v_tried, v_taken;
        v_used := v_used + v_tried;
        v_claimed := v_claimed || coalesce(v_taken, '{}');
        EXIT WHEN v_used >= v_wanted OR (v_ready < v_window AND v_over < v_window);
        v_window := v_window * 4;
    END LOOP;

    IF cardinality(v_claimed) > 0 THEN
        -- Waits for a turn that is being written ahead, see commit_1; what follows sees it.
        PERFORM 1 FROM unnest(v_claimed) AS c (instance_id)
        JOIN {schema}.instances AS i ON i.instance_id = ANY (ARRAY[c.instance_id])
        JOIN {schema}.executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY c.instance_id COLLATE "C" FOR SHARE OF e;
        v_now := {schema}.now_ms();
        -- A lease begins when it is taken, and somebody may have had to be waited for.
        IF v_now - v_begun > 50 THEN
            UPDATE {schema}.instance_locks AS l SET locked_until = v_now + p_lock_ms, locked_at = v_now
            WHERE l.instance_id = ANY (v_claimed);
        END IF;
        SELECT array_agg(c.instance_id) INTO v_crowded
        FROM unnest(v_claimed) AS c (instance_id)
        CROSS JOIN LATERAL (
            SELECT count(*) AS messages, sum(octet_length(m.work_item)) AS bytes
            FROM (SELECT q.work_item FROM {schema}.orchestrator_queue AS q
                  WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now LIMIT p_messages + 1) AS m
        ) AS s
        WHERE s.messages > 1 AND (s.messages > p_messages OR s.bytes > p_bytes);
        v_plain := v_claimed;
        IF v_crowded IS NOT NULL THEN
            v_plain := ARRAY(SELECT c.instance_id FROM unnest(v_claimed) AS c (instance_id) WHERE c.instance_id <> ALL (v_crowded));
            SELECT array_agg(w.id) INTO v_chosen
            FROM unnest(v_crowded) AS c (instance_id)
            CROSS JOIN LATERAL (
                SELECT m.id, row_number() OVER line AS n, sum(m.bytes) OVER line AS bytes
                FROM (SELECT q.id, q.available_at, octet_length(q.work_item) AS bytes,
                             CASE WHEN NOT q.begins THEN 2
                                  WHEN NOT {schema}.is_item_1(q.work_item) THEN 2
                                  WHEN starts_with(q.work_item, '{"ContinueAsNew"') THEN 0
                                  ELSE 1 END AS rank
                      FROM {schema}.orchestrator_queue AS q
                      WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now) AS m
                WINDOW line AS (ORDER BY m.rank, m.available_at, m.id ROWS UNBOUNDED PRECEDING)
            ) AS w
            WHERE w.n = 1 OR (w.n <= p_messages AND w.bytes <= p_bytes);
            -- What a lease that is over covered is free again, where this one does not cover it.
            UPDATE {schema}.orchestrator_queue AS q SET lock_token = NULL
            WHERE q.instance_id = ANY (v_crowded) AND q.lock_token IS NOT NULL AND q.id <> ALL (v_chosen);
        END IF;
        RETURN QUERY
        WITH plain AS (
            UPDATE {schema}.orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (v_plain) AND q.instance_id = ANY (ARRAY[l.instance_id])
                AND q.visible_at <= v_now
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), chosen AS (
            UPDATE {schema}.orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM {schema}.instance_locks AS l
            WHERE q.id = ANY (v_chosen) AND l.instance_id = ANY (ARRAY[q.instance_id])
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), covered AS (
            SELECT p.* FROM plain AS p UNION ALL SELECT c.* FROM chosen AS c
        ), batch AS (
            -- In the order in which they come: to sort them for each list again takes longer than all the rest.
            SELECT c.instance_id, c.lock_token, array_agg(c.id) AS ids, array_agg(c.work_item) AS items,
                   array_agg(c.available_at) AS available, array_agg(c.attempt_count) AS attempts
            FROM (SELECT c.* FROM covered AS c ORDER BY c.instance_id, c.lock_token, c.available_at, c.id) AS c
            GROUP BY c.instance_id, c.lock_token
        )
        SELECT b.lock_token, b.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id,
               e.last_event_id, i.created_at, e.status IN ('Completed', 'Failed'),
               i.instance_id IS NULL AND EXISTS (
                   SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = b.instance_id OFFSET 0),
               CASE WHEN i.instance_id IS NULL THEN (
                   SELECT min(q.visible_at) FROM {schema}.orchestrator_queue AS q
                   WHERE q.instance_id = b.instance_id AND q.begins AND q.visible_at > v_now AND {schema}.is_item_1(q.work_item)) END,
               v_now, b.ids, b.items, b.available, b.attempts, NULL::bigint, coalesce(b.instance_id = ANY (v_crowded), false)
        FROM batch AS b
        LEFT JOIN {schema}.instances AS i ON i.instance_id = ANY (ARRAY[b.instance_id])
        LEFT JOIN {schema}.executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY b.available[1], b.ids[1];
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count < cardinality(v_claimed) THEN
            -- Somebody was faster, and its messages are gone.
            DELETE FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (v_claimed) AND NOT EXISTS (
                SELECT 1 FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = l.instance_id AND q.lock_token = l.lock_token OFFSET 0);
        END IF;
    END IF;

    IF cardinality(v_claimed) < v_wanted THEN
        o_now := v_now;
        IF p_asks_next THEN
            o_next := least(
                (SELECT q.visible_at FROM {schema}.orchestrator_queue AS q
                 WHERE q.lock_token IS NULL AND q.visible_at + 0 > v_now ORDER BY q.visible_at + 0, q.id LIMIT 1),
                (SELECT min(l.locked_until) FROM {schema}.instance_locks AS l WHERE l.locked_until > v_now));
        END IF;
        RETURN NEXT;
    END IF;
END $$;

-- Puts aside, drops, or puts off messages of a turn that its fetch could not hand out as they were. Actions: 0, a dead letter
-- for the reason, in the order given; 1, dropped; 2, given back, not to be seen before. Says whether the lease was still there.
-- With p_rests the messages that the fetch left behind wait until the same time.
CREATE FUNCTION {schema}.settle_turn_1(
    p_instance text, p_secret bytea, p_ids bigint[], p_actions integer[], p_reasons text[], p_visible_at bigint, p_release boolean,
    p_rests boolean
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_count integer;
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance AND l.lock_token = p_secret FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        USING unnest(p_ids, p_actions, p_reasons) WITH ORDINALITY AS m (id, action, reason, n)
        WHERE m.action < 2 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING q.instance_id, q.work_item, q.attempt_count, m.action, m.reason, m.n
    ), dead AS (
        INSERT INTO {schema}.dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
        SELECT 'orchestrator', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, {schema}.now_ms()
        FROM gone AS g WHERE g.action = 0 ORDER BY g.n
    ), back AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET lock_token = NULL, attempt_count = q.attempt_count - 1, visible_at = p_visible_at
        FROM unnest(p_ids, p_actions) AS m (id, action)
        WHERE m.action = 2 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM back) INTO v_count;
    IF v_count <> cardinality(p_ids) THEN
        RAISE EXCEPTION 'settling messages changed % rows instead of %', v_count, cardinality(p_ids) USING ERRCODE = 'OL001';
    END IF;
    IF p_release AND p_rests THEN
        UPDATE {schema}.instance_locks AS l SET lock_token = '', locked_until = p_visible_at WHERE l.instance_id = p_instance;
    ELSIF p_release THEN
        DELETE FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance;
    END IF;
    RETURN true;
END $$;

-- Leases activities for as many slots as there are secrets. A slot has an owner of sessions or none. Tags are keys of the
-- ready index; NULL stands for all. A last row without a slot is there if there were fewer than wanted: whether any work has a
-- session, and, if that is asked for, when to look again.
CREATE FUNCTION {schema}.fetch_work_1(
    p_secrets bytea[], p_owners text[], p_session_ms bigint[], p_lock_ms bigint, p_tags text[], p_asks_next boolean
) RETURNS TABLE (
    o_slot integer, o_id bigint, o_item text, o_instance text, o_session text, o_attempts integer, o_name text, o_version text,
    o_now bigint, o_next bigint, o_secret bytea, o_sessions boolean
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now    bigint := {schema}.now_ms();
    v_tags   text[] := p_tags;
    v_wanted integer := cardinality(p_secrets);
    v_ids    bigint[] := '{}';
    v_slots  integer[] := '{}';
    v_free   integer[];
    v_slot   integer;
    v_open   text[];
    v_id     bigint;
    v_row    record;
    v_over   boolean;
    v_owned  boolean;
BEGIN
    v_owned := cardinality(array_remove(p_owners, NULL)) > 0;
    v_over := EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now);
    v_owned := v_owned AND (
        EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL)
        OR v_over AND EXISTS (SELECT 1 FROM {schema}.worker_queue AS q
                              WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.session_id IS NOT NULL OFFSET 0));
    IF v_tags IS NULL THEN
        -- Every tag that free work has, found by skipping from one to the next.
        WITH RECURSIVE tags (tag) AS (
            (SELECT coalesce('=' || q.tag, '') FROM {schema}.worker_queue AS q
             WHERE q.lock_token IS NULL AND q.session_id IS NULL ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            UNION ALL
            SELECT (SELECT coalesce('=' || q.tag, '') FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') > t.tag
                    ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            FROM tags AS t WHERE t.tag IS NOT NULL
        )
        SELECT array_agg(t.tag) INTO v_tags FROM tags AS t WHERE t.tag IS NOT NULL;
    END IF;
    IF v_owned THEN
        -- Who may have which activity depends on who holds its session: one by one, oldest first. No more of a session and of a tag
        -- is looked at than could be taken.
        SELECT array_agg(s.n ORDER BY s.n) INTO v_free FROM generate_series(1, v_wanted) AS s (n);
        SELECT array_agg(w.o_session) INTO v_open FROM {schema}.waiting_sessions_1() AS w
        WHERE w.o_holder IS NULL OR w.o_holder = ANY (p_owners);
        FOR v_id IN
            SELECT a.id FROM (
                SELECT f.id FROM unnest(v_open) AS o (session_id)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = o.session_id AND q.visible_at <= v_now
                        AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    ORDER BY q.id LIMIT v_wanted
                ) AS f
                UNION ALL
                SELECT f.id FROM unnest(v_tags) AS t (tag)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
                ) AS f
                UNION ALL
                SELECT q.id FROM {schema}.worker_queue AS q
                LEFT JOIN LATERAL (SELECT s.* FROM {schema}.sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
                WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                    AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    AND (s.session_id IS NULL OR s.locked_until <= v_now OR s.worker_id = ANY (p_owners))
            ) AS a ORDER BY a.id
        LOOP
            EXIT WHEN cardinality(v_free) = 0;
            SELECT q.id, q.session_id, CASE WHEN s.locked_until > v_now THEN s.worker_id END AS holder,
                   q.session_id IS NOT NULL AND {schema}.is_item_1(q.work_item) AS claims
            INTO v_row FROM {schema}.worker_queue AS q
            LEFT JOIN LATERAL (SELECT s.* FROM {schema}.sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
            WHERE q.id = v_id AND (q.lock_token IS NULL OR q.locked_until <= v_now) AND q.visible_at <= v_now
            FOR UPDATE OF q SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            SELECT f.n INTO v_slot FROM unnest(v_free) WITH ORDINALITY AS f (n, place)
            WHERE v_row.session_id IS NULL
                OR (p_owners[f.n] IS NOT NULL AND (v_row.holder IS NULL OR v_row.holder = p_owners[f.n]))
            ORDER BY f.place LIMIT 1;
            CONTINUE WHEN NOT FOUND;
            IF v_row.claims THEN
                INSERT INTO {schema}.sessions AS s (session_id, worker_id, locked_until, last_activity_at)
                VALUES (v_row.session_id, p_owners[v_slot], v_now + p_session_ms[v_slot], v_now)
                ON CONFLICT (session_id) DO UPDATE
                SET worker_id = excluded.worker_id, locked_until = excluded.locked_until,
                    last_activity_at = excluded.last_activity_at
                WHERE s.locked_until <= v_now OR s.worker_id = excluded.worker_id;
                CONTINUE WHEN NOT FOUND;
            END IF;
            v_ids := v_ids || v_row.id;
            v_slots := v_slots || v_slot;
            v_free := array_remove(v_free, v_slot);
        END LOOP;
    ELSIF NOT v_over AND cardinality(v_tags) = 1 THEN
        -- What workers ask for most of the time.
        SELECT coalesce(array_agg(f.id), '{}') INTO v_ids FROM (
            SELECT q.id FROM {schema}.worker_queue AS q
            WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = v_tags[1] AND q.visible_at <= v_now
                AND q.session_id IS NULL
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ) AS f;
        v_slots := (ARRAY(SELECT generate_series(1, cardinality(v_ids))));
    ELSE
        WITH free AS MATERIALIZED (
            SELECT f.id FROM unnest(v_tags) AS t (tag)
            CROSS JOIN LATERAL (
                SELECT q.id FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    AND q.session_id IS NULL
                ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
            ) AS f
        ), over AS MATERIALIZED (
            SELECT q.id FROM {schema}.worker_queue AS q
            WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                AND q.session_id IS NULL AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ), line AS (
            SELECT a.id FROM (SELECT f.id FROM free AS f UNION ALL SELECT o.id FROM over AS o) AS a
            ORDER BY a.id LIMIT v_wanted
        )
        SELECT coalesce(array_agg(n.id ORDER BY n.id), '{}'), coalesce(array_agg(n.slot ORDER BY n.id), '{}')
        INTO v_ids, v_slots FROM (SELECT i.id, (row_number() OVER (ORDER BY i.id))::integer AS slot FROM line AS i) AS n;
    END IF;

    IF cardinality(v_ids) > 0 THEN
        v_now := {schema}.now_ms();
        RETURN QUERY
        WITH leased AS (
            UPDATE {schema}.worker_queue AS q
            SET lock_token = p_secrets[t.slot], locked_until = v_now + p_lock_ms, attempt_count = q.attempt_count + 1,
                delayed = false
            FROM unnest(v_ids, v_slots) AS t (id, slot) WHERE q.id = ANY (ARRAY[t.id])
            RETURNING t.slot, q.id, q.work_item, q.instance_id, q.session_id, q.attempt_count
        )
        SELECT l.slot, l.id, l.work_item, l.instance_id::text, l.session_id::text, l.attempt_count,
               i.orchestration_name, coalesce(i.orchestration_version, 'unknown'), v_now, NULL::bigint, p_secrets[l.slot], NULL::boolean
        FROM leased AS l
        LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM {schema}.instances AS i
                           WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
        ORDER BY l.id;
    END IF;
    IF cardinality(v_ids) < v_wanted THEN
        o_now := v_now;
        o_sessions := EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.session_id IS NOT NULL);
        IF p_asks_next THEN
            o_next := least(
                (SELECT min(q.visible_at) FROM {schema}.worker_queue AS q WHERE q.delayed AND q.visible_at > v_now),
                (SELECT min(q.locked_until) FROM {schema}.worker_queue AS q
                 WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now),
                CASE WHEN o_sessions THEN (SELECT min(s.locked_until) FROM {schema}.sessions AS s WHERE s.locked_until > v_now) END);
        END IF;
        RETURN NEXT;
    END IF;
END $$;

-- Puts leased activities aside, each for its reason.
CREATE FUNCTION {schema}.bury_work_1(p_ids bigint[], p_secrets bytea[], p_reasons text[]) RETURNS integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_count integer;
BEGIN
    WITH gone AS (
        DELETE FROM {schema}.worker_queue AS q USING unnest(p_ids, p_secrets, p_reasons) AS m (id, secret, reason)
        WHERE q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING q.id, q.instance_id, q.work_item, q.attempt_count, m.reason
    )
    INSERT INTO {schema}.dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
    SELECT 'worker', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, {schema}.now_ms() FROM gone AS g ORDER BY g.id;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

-- Enqueues messages. One with a bound is refused if as many wait for its instance. Says when each may be seen; NULL if refused.
-- One with a secret is stored as leased to somebody who waits for it, if it can be: a row with the secret tells its id. It has no
-- bound.
CREATE FUNCTION {schema}.enqueue_messages_1(
    p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_not_before bigint[], p_begins boolean[], p_most bigint[],
    p_secret bytea[], p_lock_ms bigint[]
) RETURNS TABLE (o_member integer, o_visible_at bigint, o_now bigint, o_id bigint, o_secret bytea) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now     bigint;
    v_refused integer[] := '{}';
    v_leased  bytea[] := '{}';
BEGIN
    IF cardinality(array_remove(p_most, NULL)) > 0 THEN
        -- Two that count at once would both find room for the last one.
        PERFORM pg_advisory_xact_lock(hashtextextended(b.instance_id, {seed} + 1)) FROM (
            SELECT DISTINCT m.instance_id FROM unnest(p_instance, p_most) AS m (instance_id, most)
            WHERE m.most IS NOT NULL ORDER BY m.instance_id
        ) AS b;
        SELECT coalesce(array_agg(b.member), '{}') INTO v_refused FROM (
            SELECT m.member, m.most, m.instance_id, row_number() OVER (PARTITION BY m.instance_id ORDER BY m.member) AS n
            FROM unnest(p_member, p_instance, p_most) AS m (member, instance_id, most)
        ) AS b
        WHERE b.most IS NOT NULL AND b.n > b.most - (
            SELECT count(*) FROM (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                  WHERE q.instance_id = b.instance_id LIMIT b.most) AS waiting);
    END IF;
    IF cardinality(array_remove(p_secret, NULL)) > 0 THEN
        v_leased := {schema}.lease_new_1(p_instance, p_secret, p_lock_ms);
    END IF;
    v_now := {schema}.now_ms();
    IF cardinality(p_member) = 1 AND cardinality(v_refused) = 0 THEN
        o_member := 1;
        o_visible_at := greatest(v_now + p_delay[1], p_not_before[1]);
        o_now := v_now;
        INSERT INTO {schema}.orchestrator_queue AS q
            (instance_id, work_item, visible_at, available_at, begins, lock_token, attempt_count)
        VALUES (p_instance[1], p_item[1], o_visible_at, o_visible_at, p_begins[1], v_leased[1], cardinality(v_leased))
        RETURNING q.id, q.lock_token INTO o_id, o_secret;
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    WITH stored AS (
        INSERT INTO {schema}.orchestrator_queue AS q
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

CREATE FUNCTION {schema}.enqueue_work_1(
    p_item text[], p_instance text[], p_execution bigint[], p_activity bigint[], p_session text[], p_tag text[]
) RETURNS void LANGUAGE sql VOLATILE
AS $$
    INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT w.item, {schema}.now_ms(), w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
    FROM unnest(p_item, p_instance, p_execution, p_activity, p_session, p_tag) WITH ORDINALITY
        AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
    ORDER BY w.n
$$;

-- Starts instances whose id is not taken. Messages go with a start, or, if so wanted, to the instance that is there.
-- A start with a secret is stored as leased to somebody who waits for it, if it can be: a row without a member tells its id.
CREATE FUNCTION {schema}.start_1(
    p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_use_existing boolean[],
    p_secret bytea[], p_lock_ms bigint[], m_member integer[], m_item text[]
) RETURNS TABLE (o_member integer, o_taken boolean, o_status text, o_now bigint, o_id bigint, o_secret bytea) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now    bigint;
    v_taken  boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_found  integer[];
    v_leased bytea[] := '{}';
    v_one    integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(b.instance_id, {seed} + 1))
    FROM (SELECT DISTINCT m.instance_id FROM unnest(p_instance) AS m (instance_id) ORDER BY m.instance_id) AS b;
    SELECT array_agg(b.member) INTO v_found FROM (
        SELECT m.member, m.instance_id, row_number() OVER (PARTITION BY m.instance_id ORDER BY m.member) AS n
        FROM unnest(p_member, p_instance) AS m (member, instance_id)
    ) AS b
    WHERE b.n > 1
        OR EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = b.instance_id AND h.execution_id = 1 OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                   WHERE q.instance_id = b.instance_id AND q.begins AND {schema}.is_item_1(q.work_item) OFFSET 0);
    FOREACH v_one IN ARRAY coalesce(v_found, '{}') LOOP
        v_taken[v_one] := true;
        p_secret[v_one] := NULL;
    END LOOP;
    v_now := {schema}.now_ms();
    IF cardinality(array_remove(p_secret, NULL)) > 0 THEN
        v_leased := {schema}.lease_new_1(p_instance, p_secret, p_lock_ms);
        v_now := {schema}.now_ms();
    END IF;
    RETURN QUERY
    WITH stored AS (
        INSERT INTO {schema}.orchestrator_queue AS q
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
            SELECT e.status FROM {schema}.executions AS e WHERE e.instance_id = m.instance_id
            ORDER BY e.execution_id DESC LIMIT 1) END, v_now, NULL::bigint, NULL::bytea
    FROM unnest(p_member, p_instance) AS m (member, instance_id);
END $$;

-- Prolongs leases of turns (kind 0, by instance) and activities (kind 1, by id). Returns the members that had one.
CREATE FUNCTION {schema}.renew_1(
    p_member integer[], p_kind integer[], p_instance text[], p_work_id bigint[], p_secret bytea[], p_extend bigint[]
) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now      bigint;
    v_renewed  bytea[];
    v_sessions text[];
BEGIN
    IF 0 = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE {schema}.instance_locks AS l
            SET locked_until = greatest(l.locked_until, {schema}.now_ms() + m.extend)
            FROM unnest(p_kind, p_instance, p_secret, p_extend) AS m (kind, instance_id, secret, extend)
            WHERE m.kind = 0 AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
                AND l.locked_until > {schema}.now_ms()
            RETURNING l.lock_token
        )
        SELECT array_agg(r.lock_token) INTO v_renewed FROM renewed AS r;
    END IF;
    IF 1 = ANY (p_kind) THEN
        WITH renewed AS (
            UPDATE {schema}.worker_queue AS q
            SET locked_until = greatest(q.locked_until, {schema}.now_ms() + m.extend)
            FROM unnest(p_kind, p_work_id, p_secret, p_extend) AS m (kind, id, secret, extend)
            WHERE m.kind = 1 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
                AND q.locked_until > {schema}.now_ms()
            RETURNING q.lock_token, q.session_id
        )
        SELECT v_renewed || array_agg(r.lock_token), array_agg(r.session_id) FILTER (WHERE r.session_id IS NOT NULL)
        INTO v_renewed, v_sessions FROM renewed AS r;
        IF v_sessions IS NOT NULL THEN
            PERFORM {schema}.touch_sessions_1(v_sessions);
        END IF;
    END IF;
    -- Whoever renews twice at once has renewed twice.
    RETURN QUERY SELECT m.member FROM unnest(p_member, p_secret) AS m (member, secret) WHERE m.secret = ANY (v_renewed);
END $$;

-- Gives turns (kind 0) and activities (kind 1) back. A token whose lease is over but that nobody replaced is good for this.
-- A delay of NULL leaves the messages of a turn as visible as they were. With p_rests what the fetch of a turn left behind waits
-- for the delay, too: its lease becomes a rest, which nobody holds. Returns the members that had a lease.
CREATE FUNCTION {schema}.abandon_1(
    p_member integer[], p_kind integer[], p_instance text[], p_work_id bigint[], p_secret bytea[], p_delay bigint[], p_ignore boolean[],
    p_rests boolean[]
) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now     bigint;
    v_members integer[];
    v_rested  integer[];
BEGIN
    IF 0 = ANY (p_kind) THEN
        WITH freed AS (
            DELETE FROM {schema}.instance_locks AS l
            USING unnest(p_member, p_kind, p_instance, p_secret, p_rests) AS m (member, kind, instance_id, secret, rests)
            WHERE m.kind = 0 AND NOT m.rests AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
            RETURNING m.member
        )
        SELECT array_agg(f.member) INTO v_members FROM freed AS f;
        IF true = ANY (p_rests) THEN
            WITH rested AS (
                UPDATE {schema}.instance_locks AS l SET lock_token = ''
                FROM unnest(p_member, p_instance, p_secret, p_rests) AS m (member, instance_id, secret, rests)
                WHERE m.rests AND l.instance_id = ANY (ARRAY[m.instance_id]) AND l.lock_token = m.secret
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
    IF 1 = ANY (p_kind) THEN
        v_now := {schema}.now_ms();
        RETURN QUERY UPDATE {schema}.worker_queue AS q
        SET lock_token = NULL, locked_until = NULL, visible_at = v_now + coalesce(m.delay, 0),
            delayed = coalesce(m.delay, 0) > 0, attempt_count = greatest(q.attempt_count - m.ignore::integer, 0)
        FROM unnest(p_member, p_kind, p_work_id, p_secret, p_delay, p_ignore) AS m (member, kind, id, secret, delay, ignore)
        WHERE m.kind = 1 AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING m.member;
    END IF;
END $$;

-- Appends events outside of a turn.
CREATE FUNCTION {schema}.append_1(p_instance text, p_execution bigint, p_event bigint[], p_type text[], p_data text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance, p_execution, h.event_id, h.event_type, h.event_data
    FROM unnest(p_event, p_type, p_data) AS h (event_id, event_type, event_data);
    UPDATE {schema}.executions AS e
    SET last_event_id = greatest(e.last_event_id, (SELECT max(h.event_id) FROM unnest(p_event) AS h (event_id)))
    WHERE e.instance_id = p_instance AND e.execution_id = p_execution;
END $$;

-- How instances stand, each by its newest execution.
-- The event that ended a failed execution is looked for only where no commit has noted it: a tool has appended it.
CREATE FUNCTION {schema}.outcomes_1(p_instances text[]) RETURNS TABLE (
    o_instance text, o_execution bigint, o_status text, o_output text, o_terminal text, o_custom_status text, o_custom_version bigint
) LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
BEGIN
    RETURN QUERY
    SELECT e.instance_id, e.execution_id, e.status, e.output,
           CASE WHEN e.status = 'Failed' THEN (
               SELECT h.event_data FROM {schema}.history AS h
               WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id
                   AND h.event_id = coalesce(e.terminal_event_id, (
                       SELECT min(t.event_id) FROM {schema}.history AS t
                       WHERE t.instance_id = e.instance_id AND t.execution_id = e.execution_id
                           AND t.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')))) END,
           i.custom_status, coalesce(i.custom_status_version, 0)
    FROM unnest(p_instances) AS wanted (instance_id)
    CROSS JOIN LATERAL (
        SELECT n.* FROM {schema}.executions AS n WHERE n.instance_id = wanted.instance_id ORDER BY n.execution_id DESC LIMIT 1
    ) AS e
    LEFT JOIN LATERAL (SELECT i.custom_status, i.custom_status_version FROM {schema}.instances AS i
                       WHERE i.instance_id = e.instance_id LIMIT 1) AS i ON true;
END $$;

-- Tells one process that waits for turns, one that waits for work, and all that watch instances, if there are any. One
-- notification at most: it takes a lock that every commit with a notification waits for.
CREATE FUNCTION {schema}.tell_1(p_channel text, p_sender text, p_turns boolean, p_work boolean, p_ended text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now   bigint := {schema}.now_ms();
    v_turns text;
    v_work  text;
    v_ended text[] := '{}';
BEGIN
    IF p_turns THEN
        SELECT l.id INTO v_turns FROM {schema}.listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF p_work THEN
        SELECT l.id INTO v_work FROM {schema}.listeners AS l
        WHERE l.work AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF cardinality(p_ended) > 0
        AND EXISTS (SELECT 1 FROM {schema}.listeners AS l WHERE l.watches AND l.id <> p_sender AND l.expires_at > v_now) THEN
        v_ended := p_ended;
    END IF;
    IF v_turns IS NOT NULL OR v_work IS NOT NULL OR cardinality(v_ended) > 0 THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_work, to_jsonb(v_ended), 0)::text);
    END IF;
END $$;

-- Tells one process for which there is something, after the sender was told of it and did not need it, or may not have it.
-- p_hops: how many have looked in vain, one after the other. Of the turns that wait only the first are looked at.
CREATE FUNCTION {schema}.pass_on_1(p_channel text, p_sender text, p_turns boolean, p_work boolean, p_hops integer)
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan SET jit = off
AS $$
DECLARE
    v_now      bigint := {schema}.now_ms();
    v_pins     text[];
    v_turns    text;
    v_work     text;
    v_sessions text[];
    v_holders  text[];
BEGIN
    IF p_turns THEN
        -- The empty pin, of what begins, is for everybody.
        SELECT array_agg(DISTINCT coalesce(r.pinned_key, '')) INTO v_pins FROM (
            SELECT e.pinned_key FROM {schema}.orchestrator_queue AS q
            LEFT JOIN LATERAL (SELECT i.current_execution_id FROM {schema}.instances AS i
                               WHERE i.instance_id = q.instance_id LIMIT 1) AS i ON true
            LEFT JOIN LATERAL (SELECT e.pinned_key FROM {schema}.executions AS e
                               WHERE e.instance_id = q.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
            WHERE q.lock_token IS NULL AND q.visible_at + 0 <= v_now
                AND coalesce((SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id), 0) <= v_now
            ORDER BY q.visible_at + 0, q.id LIMIT 256) AS r;
        SELECT l.id INTO v_turns FROM {schema}.listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now AND EXISTS (
            SELECT 1 FROM unnest(v_pins) AS p (pin)
            WHERE p.pin = '' OR l.lowest IS NULL OR EXISTS (
                SELECT 1 FROM unnest(l.lowest, l.highest) AS r (lowest, highest)
                WHERE p.pin COLLATE "C" BETWEEN r.lowest AND r.highest))
        ORDER BY random() LIMIT 1;
    END IF;
    IF p_work THEN
        SELECT array_agg(w.o_session), array_agg(w.o_holder) INTO v_sessions, v_holders FROM {schema}.waiting_sessions_1() AS w;
        SELECT l.id INTO v_work FROM {schema}.listeners AS l
        WHERE l.work AND l.id <> p_sender AND l.expires_at > v_now AND (
            EXISTS (SELECT 1 FROM unnest(l.tags) AS t (tag) WHERE EXISTS (
                SELECT 1 FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now OFFSET 0))
            OR l.tags IS NULL AND EXISTS (
                SELECT 1 FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') >= '' AND q.visible_at <= v_now OFFSET 0)
            OR cardinality(l.owners) > 0 AND EXISTS (
                SELECT 1 FROM unnest(v_sessions, v_holders) AS s (session_id, holder)
                WHERE (s.holder IS NULL OR s.holder = ANY (l.owners)) AND EXISTS (
                    SELECT 1 FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = s.session_id AND q.visible_at <= v_now
                        AND (l.tags IS NULL OR coalesce('=' || q.tag, '') = ANY (l.tags)) OFFSET 0)))
        ORDER BY random() LIMIT 1;
    END IF;
    IF v_turns IS NOT NULL OR v_work IS NOT NULL THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_work, '[]'::jsonb, p_hops)::text);
    END IF;
END $$;

-- Enters what a process waits for and may have, and tells the others.
CREATE FUNCTION {schema}.listen_1(
    p_channel text, p_id text, p_turns boolean, p_work boolean, p_watches boolean,
    p_lowest text[], p_highest text[], p_tags text[], p_owners text[], p_for bigint
) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    DELETE FROM {schema}.listeners AS l WHERE l.expires_at < v_now - 60000;
    INSERT INTO {schema}.listeners AS l (id, turns, work, watches, lowest, highest, tags, owners, expires_at)
    VALUES (p_id, p_turns, p_work, p_watches, p_lowest, p_highest, p_tags, p_owners, v_now + p_for)
    ON CONFLICT (id) DO UPDATE
    SET turns = excluded.turns, work = excluded.work, watches = excluded.watches, lowest = excluded.lowest,
        highest = excluded.highest, tags = excluded.tags, owners = excluded.owners, expires_at = excluded.expires_at;
    PERFORM pg_notify(p_channel, jsonb_build_array(p_id, p_turns, p_work, p_watches, p_for)::text);
END $$;
