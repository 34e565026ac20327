-- Holds an instance: its lease becomes a rest without an end, and its messages leave the ready index. Answers {HOLD_DONE},
-- {HOLD_ALREADY}, {HOLD_IN_TURN} with the end of the lease, {HOLD_CANCELLED}, {HOLD_ENDED} or {HOLD_NOT_FOUND}.
--
-- The advisory lock keeps fetches and hand-offs out, which try it and do not wait. The row of the lease comes next, as in a commit, then
-- the rows of instance and execution: a deletion and a turn that is written ahead are over or wait.
CREATE FUNCTION {schema}.hold_1(
    p_instance text, p_kind text, p_actor text, p_reason text, OUT o_answer integer, OUT o_until bigint
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now     bigint;
    v_token   bytea;
    v_until   bigint;
    v_ended   boolean;
    v_current bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, {seed}));
    SELECT l.lock_token, l.locked_until INTO v_token, v_until FROM {schema}.instance_locks AS l
    WHERE l.instance_id = p_instance FOR UPDATE;
    SELECT i.current_execution_id INTO v_current FROM {schema}.instances AS i WHERE i.instance_id = p_instance FOR SHARE;
    SELECT e.status IN ('Completed', 'Failed') INTO v_ended FROM {schema}.executions AS e
    WHERE e.instance_id = p_instance AND e.execution_id = v_current FOR SHARE;
    v_now := {schema}.now_ms();
    o_answer := CASE
        WHEN EXISTS (SELECT 1 FROM {schema}.holds AS h WHERE h.instance_id = p_instance) THEN {HOLD_ALREADY}
        WHEN v_ended THEN {HOLD_ENDED}
        WHEN v_current IS NULL
            AND NOT EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_instance)
            AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
            AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                            WHERE q.instance_id || '' = p_instance AND q.begins AND {schema}.is_item_1(q.work_item))
            THEN {HOLD_NOT_FOUND}
        WHEN EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                     WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN {HOLD_CANCELLED}
        WHEN v_token <> '' AND v_until > v_now THEN {HOLD_IN_TURN}
        ELSE {HOLD_DONE} END;
    o_until := CASE WHEN o_answer = {HOLD_IN_TURN} THEN v_until END;
    IF o_answer = {HOLD_DONE} THEN
        INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
        VALUES (p_instance, '', {held_until}, v_now, true)
        ON CONFLICT (instance_id) DO UPDATE
        SET lock_token = '', locked_until = {held_until}, locked_at = v_now, has_aside = true, covers = NULL;
        INSERT INTO {schema}.holds (instance_id, kind, actor, reason, held_at, rest_until)
        VALUES (p_instance, p_kind, p_actor, p_reason, v_now, CASE WHEN v_token = '' THEN v_until END);
        UPDATE {schema}.orchestrator_queue AS q SET is_aside = true, lock_token = NULL
        WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    END IF;
END $$;
