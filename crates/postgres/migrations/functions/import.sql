-- Stores an instance with all its rows. Answers whether it did: an id that an instance has, or that a start waits for, is refused.
--
-- The locks are those of a fork, in the same order. Messages that wait for the id already stay; a hold takes them aside too, unless one of
-- them cancels the instance.
CREATE FUNCTION {schema}.import_1(
    p_instance text, p_name text, p_version text, p_parent text, p_custom_status text,
    p_current bigint, p_status_version bigint, p_created bigint, p_updated bigint,
    x_execution bigint[], x_status text[], x_output text[], x_started bigint[], x_completed bigint[],
    x_pin text[], x_pin_key text[], x_last bigint[], x_terminal bigint[],
    h_execution bigint[], h_event bigint[], h_type text[], h_data text[],
    s_key text[], s_value text[], s_at bigint[],
    k_key text[], k_value text[], k_at bigint[],
    m_item text[], m_available bigint[], m_visible bigint[], m_attempts integer[], m_begins boolean[],
    a_item text[], a_execution bigint[], a_activity bigint[], a_session text[], a_tag text[],
    a_visible bigint[], a_attempts integer[], a_failures integer[], a_error text[],
    o_kind text, o_actor text, o_reason text, o_held bigint,
    u_actor text, u_action text, u_target text, u_reason text, u_request text, u_result text
) RETURNS boolean LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, {seed} + 1));
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, {seed}));
    IF EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_instance)
        OR EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_instance)
        OR EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
        OR EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                   WHERE q.instance_id || '' = p_instance AND q.begins AND {schema}.is_item_1(q.work_item)) THEN
        RETURN false;
    END IF;
    v_now := {schema}.now_ms();
    IF p_name IS NOT NULL THEN
        INSERT INTO {schema}.instances
            (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, custom_status,
             custom_status_version, created_at, updated_at)
        VALUES (p_instance, p_name, p_version, p_current, p_parent, p_custom_status, p_status_version, p_created, p_updated);
    END IF;
    INSERT INTO {schema}.executions
        (instance_id, execution_id, status, output, started_at, completed_at, updated_at, pinned_version, pinned_key,
         last_event_id, terminal_event_id)
    SELECT p_instance, x.execution_id, x.status, x.output, x.started_at, x.completed_at, coalesce(x.completed_at, x.started_at),
           x.pin, x.pin_key, x.last_event, x.terminal
    FROM unnest(x_execution, x_status, x_output, x_started, x_completed, x_pin, x_pin_key, x_last, x_terminal)
        AS x (execution_id, status, output, started_at, completed_at, pin, pin_key, last_event, terminal);
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance, h.execution_id, h.event_id, h.event_type, h.event_data
    FROM unnest(h_execution, h_event, h_type, h_data) AS h (execution_id, event_id, event_type, event_data);
    INSERT INTO {schema}.kv_store (instance_id, key, value, last_updated_at_ms)
    SELECT p_instance, s.key, s.value, s.at FROM unnest(s_key, s_value, s_at) AS s (key, value, at);
    INSERT INTO {schema}.kv_delta (instance_id, key, value, last_updated_at_ms)
    SELECT p_instance, k.key, k.value, k.at FROM unnest(k_key, k_value, k_at) AS k (key, value, at);
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, attempt_count, begins)
    SELECT p_instance, m.item, m.visible_at, m.available_at, m.attempts, m.begins
    FROM unnest(m_item, m_available, m_visible, m_attempts, m_begins) WITH ORDINALITY
        AS m (item, available_at, visible_at, attempts, begins, n)
    ORDER BY m.n;
    INSERT INTO {schema}.worker_queue
        (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, delayed, attempt_count, failures, last_error)
    SELECT a.item, a.visible_at, p_instance, a.execution_id, a.activity_id, a.session_id, a.tag, a.visible_at > v_now, a.attempts,
           a.failures, a.error
    FROM unnest(a_item, a_execution, a_activity, a_session, a_tag, a_visible, a_attempts, a_failures, a_error) WITH ORDINALITY
        AS a (item, execution_id, activity_id, session_id, tag, visible_at, attempts, failures, error, n)
    ORDER BY a.n;
    IF o_kind IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {schema}.orchestrator_queue AS q
        WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN
        INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
        VALUES (p_instance, '', {held_until}, v_now, true)
        ON CONFLICT (instance_id) DO UPDATE
        SET lock_token = '', locked_until = {held_until}, locked_at = v_now, has_aside = true, covers = NULL;
        INSERT INTO {schema}.holds (instance_id, kind, actor, reason, held_at) VALUES (p_instance, o_kind, o_actor, o_reason, o_held);
        UPDATE {schema}.orchestrator_queue AS q SET is_aside = true, lock_token = NULL
        WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    END IF;
    INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
    VALUES (v_now, u_actor, u_action, u_target, u_reason, u_request, u_result);
    RETURN true;
END $$;
