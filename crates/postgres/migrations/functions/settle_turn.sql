-- Settles messages of a leased turn that the fetch cannot deliver. The action for a message is {FATE_DEAD_LETTER}: it becomes a dead
-- letter with the reason, in the order given; {FATE_DROPPED}: it is removed; or {FATE_DELAYED}: it is given back and not visible before
-- p_visible_at. Returns whether the lease was still there. With p_holds_back the messages that a partial fetch left behind wait until the
-- same time.
CREATE FUNCTION {schema}.settle_turn_1(
    p_instance text, p_secret bytea, p_ids bigint[], p_actions integer[], p_reasons text[], p_visible_at bigint, p_release boolean,
    p_holds_back boolean
) RETURNS boolean LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    v_count integer;
    v_aside boolean;
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance AND l.lock_token = p_secret FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    WITH gone AS (
        DELETE FROM {schema}.orchestrator_queue AS q
        USING unnest(p_ids, p_actions, p_reasons) WITH ORDINALITY AS m (id, action, reason, n)
        WHERE m.action <> {FATE_DELAYED} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING q.instance_id, q.work_item, q.attempt_count, m.action, m.reason, m.n
    ), dead AS (
        INSERT INTO {schema}.dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
        SELECT 'orchestrator', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, {schema}.now_ms()
        FROM gone AS g WHERE g.action = {FATE_DEAD_LETTER} ORDER BY g.n
    ), back AS (
        UPDATE {schema}.orchestrator_queue AS q
        SET lock_token = NULL, is_aside = false, attempt_count = q.attempt_count - 1, visible_at = p_visible_at
        FROM unnest(p_ids, p_actions) AS m (id, action)
        WHERE m.action = {FATE_DELAYED} AND q.id = ANY (ARRAY[m.id]) AND q.lock_token = p_secret
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM back) INTO v_count;
    IF v_count <> cardinality(p_ids) THEN
        RAISE EXCEPTION 'settling messages changed % rows instead of %', v_count, cardinality(p_ids) USING ERRCODE = 'OL001';
    END IF;
    IF p_release AND p_holds_back THEN
        UPDATE {schema}.instance_locks AS l SET lock_token = '', locked_until = p_visible_at, covers = NULL WHERE l.instance_id = p_instance;
    ELSIF p_release THEN
        DELETE FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance RETURNING l.has_aside INTO v_aside;
        IF v_aside THEN
            PERFORM {schema}.keep_places_1(ARRAY[p_instance]);
        END IF;
    END IF;
    RETURN true;
END $$;
