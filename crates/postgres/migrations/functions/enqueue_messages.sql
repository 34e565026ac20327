-- Enqueues messages. A message with a bound (p_most) is refused if that many wait for its instance. Returns the time at which each
-- message becomes visible; NULL if refused. A message with a secret begins an instance and is stored as leased to a parked fetch (a
-- hand-off) if the instance is new: a row with the secret has its id. It has no bound.
CREATE FUNCTION {schema}.enqueue_messages_1(
    p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_not_before bigint[], p_begins boolean[], p_most bigint[],
    p_secret bytea[], p_lock_ms bigint[]
) RETURNS TABLE (o_member integer, o_visible_at bigint, o_now bigint, o_id bigint, o_secret bytea) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now     bigint;
    v_refused integer[] := '{}';
    v_leased  bytea[] := '{}';
BEGIN
    IF cardinality(array_remove(p_most, NULL)) > 0 THEN
        -- Two transactions that count at once would both find room for the last message.
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
        v_leased := {schema}.lease_new_instances_1(p_instance, p_secret, p_lock_ms);
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
