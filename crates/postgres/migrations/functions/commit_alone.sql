-- commit_1 for a batch of one member, with scalar statements: the set-based statements of commit_1 would take most of the time of a
-- lone commit. It does the same in the same order; the store's model test compares both. It hands off at most one activity, and only
-- if the turn schedules no other.
CREATE FUNCTION {schema}.commit_alone_1(
    {commit_parameters},
    OUT o_member integer, OUT o_answer integer, OUT o_at bigint, OUT o_more boolean, OUT o_id bigint, OUT o_secret bytea,
    OUT o_name text, OUT o_version text
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
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
    o_answer := {COMMIT_REFUSED};
    IF v_kind <> {KIND_TURN} THEN
        DELETE FROM {schema}.worker_queue AS q
        WHERE q.id = p_activity_row[1] AND q.lock_token = v_secret AND q.locked_until > {schema}.now_ms()
        RETURNING q.session_id INTO v_session;
        IF FOUND THEN
            o_answer := {COMMIT_DONE};
            IF v_session IS NOT NULL THEN
                UPDATE {schema}.sessions AS s SET last_activity_at = v_now
                WHERE s.session_id = v_session AND s.locked_until > v_now;
            END IF;
        END IF;
        IF v_kind = {KIND_AHEAD} AND o_answer = {COMMIT_DONE} THEN
            -- The row lock keeps fetches of the instance out, which lock the same row after they have taken their lease: the
            -- statements below see that lease.
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
                o_answer := {COMMIT_QUEUED};
            END IF;
        END IF;
    ELSE
        DELETE FROM {schema}.instance_locks AS l
        WHERE l.instance_id = v_instance AND l.lock_token = v_secret AND l.locked_until > {schema}.now_ms();
        IF FOUND THEN
            o_answer := {COMMIT_DONE};
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
        IF cardinality(a_item) = 1 THEN
            INSERT INTO {schema}.worker_queue
                (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, lock_token, locked_until, attempt_count)
            VALUES (a_item[1], v_now, a_instance[1], a_execution[1], a_activity[1], a_session[1], a_tag[1], a_secret[1],
                    CASE WHEN a_secret[1] IS NOT NULL THEN {schema}.now_ms() + a_lock_ms[1] END, (a_secret[1] IS NOT NULL)::integer)
            RETURNING id, lock_token INTO o_id, o_secret;
            IF o_secret IS NOT NULL THEN
                SELECT i.orchestration_name, coalesce(i.orchestration_version, 'unknown') INTO o_name, o_version
                FROM {schema}.instances AS i WHERE i.instance_id = a_instance[1];
            END IF;
        ELSIF cardinality(a_item) > 0 THEN
            INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
            SELECT w.item, v_now, w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
            FROM unnest(a_item, a_instance, a_execution, a_activity, a_session, a_tag) WITH ORDINALITY
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
    ELSIF o_answer <> {COMMIT_REFUSED} AND p_completion[1] IS NOT NULL THEN
        -- An outcome that is stored without a turn.
        INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins, origin)
        VALUES (v_instance, p_completion[1], v_now, v_now, false, v_secret);
    END IF;
    o_at := v_now;
    -- Messages that came meanwhile count.
    v_now := greatest(v_now, {schema}.now_ms());
    o_more := v_kind <> {KIND_ACTIVITY} AND EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                      WHERE q.instance_id = v_instance AND q.visible_at <= v_now);
END $$;
