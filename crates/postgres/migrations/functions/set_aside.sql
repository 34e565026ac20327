-- Takes up to p_most free messages of leased instances out of the ready index, oldest first; returns their number. A poll would read them
-- and could lease none of them. A fetch finds them by the row of their instance in instance_locks, which stays while a message is set
-- aside: a lease, a rest, or a row that keeps the place of the instance in line (keep_places.sql).
--
-- Each transaction that covers, returns or consumes messages of an instance changes that row first. So the row lock keeps them all out,
-- and the one that removes the lease later sees has_aside. This transaction waits for no lock and does nothing else: a transaction that
-- waits for it cannot hold a lock that it needs.
CREATE FUNCTION {schema}.set_aside_1(p_most integer) RETURNS integer LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now       bigint := {schema}.now_ms();
    v_ids       bigint[];
    v_instances text[];
    v_count     integer;
BEGIN
    SELECT array_agg(f.id), array_agg(DISTINCT f.instance_id) INTO v_ids, v_instances FROM (
        SELECT q.id, q.instance_id FROM {schema}.orchestrator_queue AS q
        WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_now
            AND (SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id) > v_now
        ORDER BY q.visible_at + 0, q.id LIMIT p_most
    ) AS f;
    IF v_ids IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(l.instance_id) INTO v_instances FROM (
        SELECT l.instance_id FROM {schema}.instance_locks AS l
        WHERE l.instance_id = ANY (v_instances) FOR UPDATE SKIP LOCKED
    ) AS l;
    UPDATE {schema}.instance_locks AS l SET has_aside = true WHERE l.instance_id = ANY (v_instances) AND NOT l.has_aside;
    -- By ids: the messages that are set aside already may be many.
    UPDATE {schema}.orchestrator_queue AS q SET is_aside = true FROM unnest(v_ids) AS f (id)
    WHERE q.id = ANY (ARRAY[f.id]) AND q.lock_token IS NULL AND q.instance_id || '' = ANY (v_instances);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;
