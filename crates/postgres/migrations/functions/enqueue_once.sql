-- Enqueues a message unless its key is stored for its instance. Answers {ONCE_STORED}, {ONCE_REPEATED}, {ONCE_ENDED}, {ONCE_NOT_FOUND} or
-- {ONCE_FULL}.
--
-- Of two calls with the same key one waits for the other, by the lock under which starts and bounded messages count. The lock of the
-- instance lets turns commit; a deletion waits for it, so that no key outlives its instance.
CREATE FUNCTION {schema}.enqueue_once_1(
    p_instance text, p_key text, p_item text, p_not_before bigint, p_begins boolean, p_most bigint
) RETURNS integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_current bigint;
    v_ended   boolean;
    v_at      bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_instance, {seed} + 1));
    SELECT i.current_execution_id INTO v_current FROM {schema}.instances AS i WHERE i.instance_id = p_instance FOR KEY SHARE;
    IF EXISTS (SELECT 1 FROM {schema}.message_keys AS k WHERE k.instance_id = p_instance AND k.key = p_key) THEN
        RETURN {ONCE_REPEATED};
    END IF;
    SELECT e.status IN ('Completed', 'Failed') INTO v_ended FROM {schema}.executions AS e
    WHERE e.instance_id = p_instance AND e.execution_id = v_current;
    IF v_ended THEN
        RETURN {ONCE_ENDED};
    END IF;
    IF v_current IS NULL
        AND NOT EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_instance)
        AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance AND h.execution_id = 1)
        AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                        WHERE q.instance_id || '' = p_instance AND q.begins AND {schema}.is_item_1(q.work_item)) THEN
        RETURN {ONCE_NOT_FOUND};
    END IF;
    IF p_most <= (SELECT count(*) FROM (SELECT 1 FROM {schema}.orchestrator_queue AS q
                                        WHERE q.instance_id = p_instance LIMIT p_most) AS waiting) THEN
        RETURN {ONCE_FULL};
    END IF;
    v_at := greatest({schema}.now_ms(), p_not_before);
    INSERT INTO {schema}.message_keys (instance_id, key, at) VALUES (p_instance, p_key, v_at);
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    VALUES (p_instance, p_item, v_at, v_at, p_begins);
    RETURN {ONCE_STORED};
END $$;
