-- Gives a turn back with its deliveries uncounted, and holds its instance. Answers {HOLD_DONE}, {HOLD_CANCELLED}, which leaves the lease as it is, or NULL if
-- the caller had no lease.
CREATE FUNCTION {schema}.hold_turn_1(p_instance text, p_secret bytea, p_kind text, p_actor text, p_reason text)
RETURNS integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l
    WHERE l.instance_id = p_instance AND l.lock_token = p_secret AND l.locked_until > {schema}.now_ms() FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
               WHERE q.instance_id = p_instance AND starts_with(q.work_item, '{"CancelInstance"')) THEN
        RETURN {HOLD_CANCELLED};
    END IF;
    UPDATE {schema}.instance_locks AS l SET lock_token = '', locked_until = {held_until}, has_aside = true, covers = NULL
    WHERE l.instance_id = p_instance;
    INSERT INTO {schema}.holds (instance_id, kind, actor, reason, held_at)
    VALUES (p_instance, p_kind, p_actor, p_reason, {schema}.now_ms());
    UPDATE {schema}.orchestrator_queue AS q
    SET is_aside = true, lock_token = NULL,
        attempt_count = CASE WHEN q.lock_token = p_secret THEN 0 ELSE q.attempt_count END
    WHERE q.instance_id = p_instance AND (NOT q.is_aside OR q.lock_token IS NOT NULL);
    RETURN {HOLD_DONE};
END $$;
