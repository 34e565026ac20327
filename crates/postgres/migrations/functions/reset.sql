-- Begins a new execution with a copy of the first events of another one: the next execution of the same instance, or with another p_target
-- the first stored execution of a new instance. Answers {RESET_DONE}, {RESET_IN_TURN} with the end of the lease, {RESET_CHANGED},
-- {RESET_TAKEN} or {RESET_NOT_FOUND}.
--
-- The locks are those of hold_1, in the same order; a fork first takes the lock under which starts look whether an id is taken. A held
-- instance stays held: its messages are set aside as all others that arrive for it.
CREATE FUNCTION {schema}.reset_1(
    p_source text, p_execution bigint, p_last_event bigint, p_target text,
    p_end_event bigint, p_end_type text, p_end_data text, p_end_output text,
    p_next bigint, p_name text, p_version text, p_parent text, p_pin text, p_pin_key text, p_custom_status text,
    h_event bigint[], h_type text[], h_data text[],
    a_item text[], a_instance text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[],
    c_instance text[], c_execution bigint[], c_activity bigint[],
    m_instance text[], m_item text[], m_not_before bigint[], m_begins boolean[],
    f_item text[], p_first_at bigint,
    s_key text[], s_value text[], s_at bigint[],
    k_key text[], k_value text[], k_at bigint[],
    u_actor text, u_action text, u_target text, u_reason text, u_request text, u_result text,
    OUT o_answer integer, OUT o_until bigint
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
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
        PERFORM pg_advisory_xact_lock(hashtextextended(p_target, {seed} + 1));
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(p_source, {seed}));
    SELECT l.lock_token, l.locked_until INTO v_token, v_until FROM {schema}.instance_locks AS l
    WHERE l.instance_id = p_source FOR UPDATE;
    SELECT true INTO v_known FROM {schema}.instances AS i WHERE i.instance_id = p_source FOR UPDATE;
    SELECT e.execution_id INTO v_newest FROM {schema}.executions AS e
    WHERE e.instance_id = p_source ORDER BY e.execution_id DESC LIMIT 1 FOR UPDATE;
    SELECT h.event_id INTO v_last FROM {schema}.history AS h
    WHERE h.instance_id = p_source AND h.execution_id = p_execution ORDER BY h.event_id DESC LIMIT 1;
    v_now := {schema}.now_ms();
    o_answer := CASE
        WHEN v_known IS NULL THEN {RESET_NOT_FOUND}
        WHEN NOT v_fork AND v_token <> '' AND v_until > v_now THEN {RESET_IN_TURN}
        WHEN v_newest IS DISTINCT FROM p_execution OR v_last IS DISTINCT FROM p_last_event THEN {RESET_CHANGED}
        WHEN v_fork AND (
            EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_target)
            OR EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_target)
            OR EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_target AND h.execution_id = 1)
            OR EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                       WHERE q.instance_id || '' = p_target AND q.begins AND {schema}.is_item_1(q.work_item)))
            THEN {RESET_TAKEN}
        ELSE {RESET_DONE} END;
    o_until := CASE WHEN o_answer = {RESET_IN_TURN} THEN v_until END;
    IF o_answer <> {RESET_DONE} THEN
        RETURN;
    END IF;
    -- A lease that is over ends. A rest and the place in line stay.
    IF NOT v_fork AND v_token <> '' THEN
        UPDATE {schema}.orchestrator_queue AS q SET lock_token = NULL WHERE q.instance_id = p_source AND q.lock_token IS NOT NULL;
        DELETE FROM {schema}.instance_locks AS l WHERE l.instance_id = p_source RETURNING l.has_aside INTO v_aside;
        IF v_aside THEN
            PERFORM {schema}.keep_places_1(ARRAY[p_source]);
        END IF;
    END IF;
    IF p_end_event IS NOT NULL THEN
        UPDATE {schema}.executions AS e
        SET status = 'ContinuedAsNew', output = p_end_output, completed_at = v_now, updated_at = v_now, last_event_id = p_end_event,
            terminal_event_id = p_end_event
        WHERE e.instance_id = p_source AND e.execution_id = p_execution;
        INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
        VALUES (p_source, p_execution, p_end_event, p_end_type, p_end_data);
    END IF;
    DELETE FROM {schema}.kv_store AS s WHERE s.instance_id = p_target;
    DELETE FROM {schema}.kv_delta AS d WHERE d.instance_id = p_target;
    INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at_ms)
    SELECT p_target, s.key, s.value, s.at FROM unnest(s_key, s_value, s_at) AS s (key, value, at);
    INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT p_target, k.key, k.value, coalesce(k.at, v_now) FROM unnest(k_key, k_value, k_at) AS k (key, value, at);
    INSERT INTO {schema}.instances AS i
        (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, custom_status,
         custom_status_version, created_at, updated_at)
    VALUES (p_target, p_name, p_version, p_next, p_parent, p_custom_status, 1, v_now, v_now)
    ON CONFLICT (instance_id) DO UPDATE
    SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
        current_execution_id = greatest(i.current_execution_id, excluded.current_execution_id),
        custom_status = excluded.custom_status, custom_status_version = i.custom_status_version + 1, updated_at = v_now;
    -- Events can be stored before their execution.
    SELECT h.event_id INTO v_last FROM {schema}.history AS h
    WHERE h.instance_id = p_target AND h.execution_id = p_next ORDER BY h.event_id DESC LIMIT 1;
    INSERT INTO {schema}.executions
        (instance_id, execution_id, status, started_at, updated_at, last_event_id, pinned_version, pinned_key)
    VALUES (p_target, p_next, 'Running', v_now, v_now, greatest(h_event[cardinality(h_event)], v_last, 0), p_pin, p_pin_key);
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_target, p_next, h.event_id, h.event_type, h.event_data
    FROM unnest(h_event, h_type, h_data) AS h (event_id, event_type, event_data);
    INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT a.item, v_now, a.instance_id, a.execution_id, a.activity_id, a.session_id, a.tag
    FROM unnest(a_item, a_instance, a_execution, a_activity, a_session, a_tag) WITH ORDINALITY
        AS a (item, instance_id, execution_id, activity_id, session_id, tag, n)
    ORDER BY a.n;
    DELETE FROM {schema}.worker_queue AS q
    USING unnest(c_instance, c_execution, c_activity) AS c (instance_id, execution_id, activity_id)
    WHERE q.instance_id = ANY (ARRAY[c.instance_id]) AND q.execution_id = c.execution_id AND q.activity_id = c.activity_id;
    -- The first messages go before all messages that wait. Plans of one chain of resets have the same time, so that messages of an
    -- earlier reset can wait with the time of this plan.
    IF cardinality(f_item) > 0 THEN
        SELECT min(greatest(q.available_at - 1, 0)) INTO v_first
        FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_target;
        v_first := least(v_first, p_first_at, v_now);
    END IF;
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT p_target, f.item, v_first, v_first, false
    FROM unnest(f_item) WITH ORDINALITY AS f (item, n) ORDER BY f.n;
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT m.instance_id, m.item, greatest(m.not_before, v_now), greatest(m.not_before, v_now), m.begins
    FROM unnest(m_instance, m_item, m_not_before, m_begins) WITH ORDINALITY AS m (instance_id, item, not_before, begins, n)
    ORDER BY m.n;
    INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
    VALUES (v_now, u_actor, u_action, u_target, u_reason, u_request, u_result);
END $$;
