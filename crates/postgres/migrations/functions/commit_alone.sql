-- commit_1 for a batch of one member, with scalar statements: the set-based statements of commit_1 would take most of the time of a
-- lone commit. Both have the writes of a turn from turn_writes.sql; the store's model test compares the rest. It hands off at most one
-- activity, and only if the turn schedules no other.
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
    v_names     text[];
    v_count     integer;
    v_aside     boolean;
    v_covers    bigint[];
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
        WHERE l.instance_id = v_instance AND l.lock_token = v_secret AND l.locked_until > {schema}.now_ms()
        RETURNING l.has_aside, l.covers INTO v_aside, v_covers;
        IF FOUND THEN
            o_answer := {COMMIT_DONE};
            v_turn := true;
            IF v_covers IS NULL THEN
                DELETE FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = v_instance AND q.lock_token = v_secret;
            ELSE
                DELETE FROM {schema}.orchestrator_queue AS q WHERE q.id = ANY (v_covers) AND q.lock_token = v_secret;
            END IF;
            GET DIAGNOSTICS v_count = ROW_COUNT;
            IF v_count <> p_messages[1] THEN
                RAISE EXCEPTION 'consuming messages: % instead of the % that were fetched', v_count, p_messages[1]
                USING ERRCODE = 'OL001';
            END IF;
            IF v_aside THEN
                PERFORM {schema}.keep_places_1(ARRAY[v_instance]);
            END IF;
        END IF;
    END IF;

    IF v_turn THEN
        {turn_writes_alone}
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
