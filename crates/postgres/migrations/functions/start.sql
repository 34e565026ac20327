-- Starts instances whose id is not taken. Messages are delivered with the start, or, with p_use_existing, to the existing instance.
-- A start with a secret is stored as leased to a parked fetch (a hand-off) if the instance is new: a row without a member has its id.
CREATE FUNCTION {schema}.start_1(
    p_member integer[], p_instance text[], p_item text[], p_delay bigint[], p_use_existing boolean[],
    p_secret bytea[], p_lock_ms bigint[], m_member integer[], m_item text[]
) RETURNS TABLE (o_member integer, o_taken boolean, o_status text, o_now bigint, o_id bigint, o_secret bytea) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now    bigint;
    v_taken  boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_found  integer[];
    v_leased bytea[] := '{}';
    v_one    integer;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(b.instance_id, {seed} + 1))
    FROM (SELECT DISTINCT m.instance_id FROM unnest(p_instance) AS m (instance_id) ORDER BY m.instance_id) AS b;
    SELECT array_agg(b.member) INTO v_found FROM (
        SELECT m.member, m.instance_id, row_number() OVER (PARTITION BY m.instance_id ORDER BY m.member) AS n
        FROM unnest(p_member, p_instance) AS m (member, instance_id)
    ) AS b
    WHERE b.n > 1
        OR EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = b.instance_id OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = b.instance_id AND h.execution_id = 1 OFFSET 0)
        OR EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q
                   WHERE q.instance_id || '' = b.instance_id AND q.begins AND {schema}.is_item_1(q.work_item) OFFSET 0);
    FOREACH v_one IN ARRAY coalesce(v_found, '{}') LOOP
        v_taken[v_one] := true;
        p_secret[v_one] := NULL;
    END LOOP;
    v_now := {schema}.now_ms();
    IF cardinality(array_remove(p_secret, NULL)) > 0 THEN
        v_leased := {schema}.lease_new_instances_1(p_instance, p_secret, p_lock_ms);
        v_now := {schema}.now_ms();
    END IF;
    RETURN QUERY
    WITH stored AS (
        INSERT INTO {schema}.orchestrator_queue AS q
            (instance_id, work_item, visible_at, available_at, begins, lock_token, attempt_count)
        SELECT a.instance_id, a.item, a.at, a.at, a.begins, a.secret, (a.secret IS NOT NULL)::integer FROM (
            SELECT m.instance_id, m.item, v_now + m.delay AS at, true AS begins,
                   CASE WHEN m.secret = ANY (v_leased) THEN m.secret END AS secret, m.member, 0::bigint AS n
            FROM unnest(p_member, p_instance, p_item, p_delay, p_secret) AS m (member, instance_id, item, delay, secret)
            WHERE NOT v_taken[m.member]
            UNION ALL
            SELECT p_instance[m.member], m.item, CASE WHEN v_taken[m.member] THEN v_now ELSE v_now + p_delay[m.member] END,
                   false, NULL, m.member, m.n
            FROM unnest(m_member, m_item) WITH ORDINALITY AS m (member, item, n)
            WHERE NOT v_taken[m.member] OR p_use_existing[m.member]
        ) AS a ORDER BY a.member, a.n
        RETURNING q.id, q.lock_token
    )
    SELECT NULL::integer, NULL::boolean, NULL::text, v_now, s.id, s.lock_token
    FROM stored AS s WHERE s.lock_token IS NOT NULL;
    RETURN QUERY SELECT m.member, v_taken[m.member],
        CASE WHEN v_taken[m.member] THEN (
            SELECT e.status FROM {schema}.executions AS e WHERE e.instance_id = m.instance_id
            ORDER BY e.execution_id DESC LIMIT 1) END, v_now, NULL::bigint, NULL::bytea
    FROM unnest(p_member, p_instance) AS m (member, instance_id);
END $$;
