-- Leases up to as many instances as there are secrets, longest waiting first, and covers their visible messages. Versions are given as
-- ranges of keys; NULL accepts every version. If there are fewer instances than secrets, a last row without an instance has the time at
-- which to poll again, if p_asks_next. A last row without an instance also says whether the poll has read {MANY_SKIPPED} messages or more
-- that it could not lease because their instances are leased: the caller then has them set aside.
--
-- Concurrent fetches skip instances that another one has locked with an advisory lock. Row locks on messages would not do: two fetches
-- could hold different messages of one instance, and wait for each other.
--
-- Of one instance it takes at most p_messages messages with at most p_bytes bytes of text, and at least one: the start of a
-- successor, then other starts, then all others, each in their order. o_partial says that visible messages are left.
-- Of an instance whose visible messages have {LARGE_BYTES} bytes or more, the texts are left out, and o_left_out_bytes has their size: to
-- build and return arrays of megabytes would take several times as long as to read the rows, and keep other requests of the
-- transaction waiting.
CREATE FUNCTION {schema}.fetch_turns_1(
    p_secrets bytea[], p_lock_ms bigint, p_lowest text[], p_highest text[], p_asks_next boolean, p_messages bigint, p_bytes bigint)
RETURNS TABLE (
    o_secret bytea, o_instance text, o_name text, o_version text, o_execution bigint, o_last_event bigint, o_created_at bigint,
    o_ended boolean, o_has_history boolean, o_start_due bigint, o_now bigint,
    o_ids bigint[], o_items text[], o_available bigint[], o_attempts integer[], o_next bigint, o_partial boolean, o_left_out_bytes bigint,
    o_skipped boolean
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now     bigint;
    v_begun   bigint := {schema}.now_ms();
    v_wanted  integer := cardinality(p_secrets);
    v_used    integer := 0;
    v_window  integer := v_wanted + 8;
    v_ready   integer;
    v_skipped integer;
    v_over    integer;
    -- Instances whose lease is over, if there are any: nearly always there are none.
    v_ended    text[];
    v_ended_at bigint[];
    v_ended_id bigint[];
    v_tried   integer;
    v_taken   text[];
    v_claimed text[] := '{}';
    -- Claimed instances whose lease expired in the hands of its holder.
    v_expired text[];
    v_lost    text[] := '{}';
    v_count   integer;
    -- Instances with more messages than a fetch takes, and the messages that it takes; nearly always there are none.
    v_crowded text[];
    v_chosen  bigint[];
    v_plain   text[];
    -- Instances whose texts are left out.
    v_large   text[];
BEGIN
    FOR v_round IN 1..6 LOOP
        v_now := {schema}.now_ms();
        v_over := 0;
        v_ended := NULL;
        v_ended_at := NULL;
        v_ended_id := NULL;
        IF EXISTS (SELECT 1 FROM {schema}.instance_locks AS l WHERE l.locked_until <= v_now) THEN
            SELECT count(*), array_agg(o.instance_id), array_agg(o.visible_at), array_agg(o.id)
            INTO v_over, v_ended, v_ended_at, v_ended_id
            FROM (
                SELECT l.instance_id, m.visible_at, m.id
                FROM {schema}.instance_locks AS l
                CROSS JOIN LATERAL (SELECT q.visible_at, q.id FROM {schema}.orchestrator_queue AS q
                                    WHERE q.instance_id = l.instance_id AND q.visible_at <= v_now
                                    ORDER BY q.visible_at, q.id LIMIT 1) AS m
                LEFT JOIN LATERAL (SELECT i.current_execution_id FROM {schema}.instances AS i
                                   WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
                LEFT JOIN LATERAL (SELECT e.pinned_key FROM {schema}.executions AS e
                                   WHERE e.instance_id = l.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
                WHERE l.locked_until <= v_now
                    AND (p_lowest IS NULL OR e.pinned_key IS NULL OR EXISTS (
                        SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                        WHERE e.pinned_key BETWEEN r.lowest AND r.highest))
                ORDER BY l.locked_until LIMIT v_window
            ) AS o;
        END IF;
        WITH ready AS MATERIALIZED (
            -- Each free instance once, by its first message, and the messages of leased instances. The condition that excludes most rows
            -- comes first.
            SELECT s.instance_id, s.visible_at, s.id, s.is_free
            FROM (SELECT q.instance_id, q.visible_at, q.id, CASE
                      WHEN (SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id) > v_now
                          THEN false
                      WHEN EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS f
                                   WHERE f.instance_id = q.instance_id AND f.visible_at <= q.visible_at
                                       AND (f.visible_at < q.visible_at OR f.id < q.id) AND coalesce(f.lock_token, '') = '' OFFSET 0)
                          THEN NULL
                      WHEN p_lowest IS NULL THEN true
                      WHEN coalesce((
                          SELECT e.pinned_key IS NULL OR EXISTS (
                              SELECT 1 FROM unnest(p_lowest, p_highest) AS r (lowest, highest)
                              WHERE e.pinned_key BETWEEN r.lowest AND r.highest)
                          FROM {schema}.instances AS i
                          JOIN {schema}.executions AS e
                              ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
                          WHERE i.instance_id = q.instance_id), true)
                          THEN true END AS is_free
                  FROM {schema}.orchestrator_queue AS q
                  WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_now
                  ORDER BY q.visible_at + 0, q.id OFFSET 0) AS s
            WHERE s.is_free IS NOT NULL LIMIT v_window
        ), line AS MATERIALIZED (
            SELECT a.instance_id
            FROM (SELECT r.instance_id, r.visible_at, r.id FROM ready AS r
                  WHERE r.is_free AND (v_ended IS NULL OR r.instance_id <> ALL (v_ended))
                  UNION ALL SELECT o.* FROM unnest(v_ended, v_ended_at, v_ended_id) AS o) AS a (instance_id, visible_at, id)
            ORDER BY a.visible_at, a.id
        ), free AS MATERIALIZED (
            SELECT n.instance_id FROM line AS n
            WHERE pg_try_advisory_xact_lock(hashtextextended(n.instance_id, {seed}))
            LIMIT v_wanted - v_used
        ), leased AS (
            INSERT INTO {schema}.instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT f.instance_id, p_secrets[v_used + (row_number() OVER ())::integer], v_now + p_lock_ms, v_now FROM free AS f
            ON CONFLICT (instance_id) DO UPDATE
            SET lock_token = excluded.lock_token, locked_until = excluded.locked_until, locked_at = excluded.locked_at, covers = NULL
            WHERE l.locked_until <= {schema}.now_ms()
            RETURNING l.instance_id
        )
        SELECT r.seen, r.skipped, (SELECT count(*) FROM free),
               (SELECT array_agg(t.instance_id ORDER BY t.instance_id) FROM leased AS t),
               CASE WHEN v_over > 0 THEN (
                   SELECT array_agg(l.instance_id) FROM free AS f
                   JOIN {schema}.instance_locks AS l ON l.instance_id = ANY (ARRAY[f.instance_id]) WHERE l.lock_token <> '') END
        INTO v_ready, v_skipped, v_tried, v_taken, v_expired
        FROM (SELECT count(*) AS seen, count(*) FILTER (WHERE NOT r.is_free) AS skipped FROM ready AS r) AS r;
        v_used := v_used + v_tried;
        v_claimed := v_claimed || coalesce(v_taken, '{}');
        v_lost := v_lost || coalesce(v_expired, '{}');
        EXIT WHEN v_used >= v_wanted OR (v_ready < v_window AND v_over < v_window);
        -- Each round reads the messages of the one before again: behind skipped messages there may be thousands more of them.
        v_window := greatest(v_window * 4, CASE WHEN v_skipped * 2 > v_window THEN 65536 END);
    END LOOP;

    IF cardinality(v_claimed) > 0 THEN
        -- Waits for a turn that is being written ahead, see commit_1; what follows sees it.
        PERFORM 1 FROM unnest(v_claimed) AS c (instance_id)
        JOIN {schema}.instances AS i ON i.instance_id = ANY (ARRAY[c.instance_id])
        JOIN {schema}.executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY c.instance_id COLLATE "C" FOR SHARE OF e;
        v_now := {schema}.now_ms();
        -- A lease begins when it is taken, which may be after a wait for locks.
        IF v_now - v_begun > 50 THEN
            UPDATE {schema}.instance_locks AS l SET locked_until = v_now + p_lock_ms, locked_at = v_now
            WHERE l.instance_id = ANY (v_claimed);
        END IF;
        SELECT array_agg(c.instance_id) FILTER (WHERE s.messages > 1 AND (s.messages > p_messages OR s.bytes > p_bytes)),
               array_agg(c.instance_id) FILTER (WHERE s.bytes >= {LARGE_BYTES})
        INTO v_crowded, v_large
        FROM unnest(v_claimed) AS c (instance_id)
        CROSS JOIN LATERAL (
            SELECT count(*) AS messages, sum(octet_length(m.work_item)) AS bytes
            FROM (SELECT q.work_item FROM {schema}.orchestrator_queue AS q
                  WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now LIMIT p_messages + 1) AS m
        ) AS s;
        v_plain := v_claimed;
        IF v_crowded IS NOT NULL THEN
            v_plain := ARRAY(SELECT c.instance_id FROM unnest(v_claimed) AS c (instance_id) WHERE c.instance_id <> ALL (v_crowded));
            SELECT array_agg(w.id) INTO v_chosen
            FROM unnest(v_crowded) AS c (instance_id)
            CROSS JOIN LATERAL (
                SELECT m.id, row_number() OVER line AS n, sum(m.bytes) OVER line AS bytes
                -- A message that is neither a start nor pushed back has the same place by either time, so that the first by
                -- visible_at suffice.
                FROM (SELECT q.id, q.available_at, octet_length(q.work_item) AS bytes,
                             CASE WHEN NOT q.begins THEN 2
                                  WHEN NOT {schema}.is_item_1(q.work_item) THEN 2
                                  WHEN starts_with(q.work_item, '{"ContinueAsNew"') THEN 0
                                  ELSE 1 END AS rank
                      FROM (SELECT f.id FROM (SELECT q.id FROM {schema}.orchestrator_queue AS q
                                              WHERE q.instance_id = c.instance_id AND q.visible_at <= v_now
                                              ORDER BY q.visible_at, q.id LIMIT p_messages) AS f
                            UNION SELECT q.id FROM {schema}.orchestrator_queue AS q
                            WHERE q.instance_id || '' = c.instance_id AND q.begins AND q.visible_at <= v_now
                            UNION SELECT q.id FROM {schema}.orchestrator_queue AS q
                            WHERE q.instance_id || '' = c.instance_id AND q.visible_at > q.available_at AND q.visible_at <= v_now) AS f
                      JOIN {schema}.orchestrator_queue AS q ON q.id = ANY (ARRAY[f.id])) AS m
                WINDOW line AS (ORDER BY m.rank, m.available_at, m.id ROWS UNBOUNDED PRECEDING)
            ) AS w
            WHERE w.n = 1 OR (w.n <= p_messages AND w.bytes <= p_bytes);
            -- Messages that an expired lease covered are free again if this lease does not cover them.
            v_lost := ARRAY(SELECT c.instance_id FROM unnest(v_crowded) AS c (instance_id) WHERE c.instance_id = ANY (v_lost));
            IF cardinality(v_lost) > 0 THEN
                UPDATE {schema}.orchestrator_queue AS q SET lock_token = NULL
                WHERE q.instance_id = ANY (v_lost) AND q.lock_token IS NOT NULL AND q.id <> ALL (v_chosen);
            END IF;
            UPDATE {schema}.instance_locks AS l SET covers = c.ids
            FROM (SELECT q.instance_id, array_agg(q.id) AS ids FROM {schema}.orchestrator_queue AS q
                  WHERE q.id = ANY (v_chosen) GROUP BY q.instance_id) AS c
            WHERE l.instance_id = ANY (ARRAY[c.instance_id]);
        END IF;
        RETURN QUERY
        WITH plain AS (
            UPDATE {schema}.orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (v_plain) AND q.instance_id = ANY (ARRAY[l.instance_id])
                AND q.visible_at <= v_now
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), chosen AS (
            UPDATE {schema}.orchestrator_queue AS q SET lock_token = l.lock_token, attempt_count = q.attempt_count + 1
            FROM {schema}.instance_locks AS l
            WHERE q.id = ANY (v_chosen) AND l.instance_id = ANY (ARRAY[q.instance_id])
            RETURNING q.instance_id, l.lock_token, q.id, q.work_item, q.available_at, q.attempt_count
        ), covered AS (
            SELECT p.* FROM plain AS p UNION ALL SELECT c.* FROM chosen AS c
        ), batch AS (
            -- In the order in which they come: to sort them for each list again takes longer than all the rest.
            SELECT c.instance_id, c.lock_token, array_agg(c.id) AS ids,
                   array_agg(CASE WHEN c.instance_id = ANY (v_large) THEN NULL ELSE c.work_item END) AS items,
                   sum(CASE WHEN c.instance_id = ANY (v_large) THEN octet_length(c.work_item) END) AS left_out_bytes,
                   array_agg(c.available_at) AS available, array_agg(c.attempt_count) AS attempts
            FROM (SELECT c.* FROM covered AS c ORDER BY c.instance_id, c.lock_token, c.available_at, c.id) AS c
            GROUP BY c.instance_id, c.lock_token
        )
        SELECT b.lock_token, b.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id,
               e.last_event_id, i.created_at, e.status IN ('Completed', 'Failed'),
               i.instance_id IS NULL AND EXISTS (
                   SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = b.instance_id OFFSET 0),
               CASE WHEN i.instance_id IS NULL THEN (
                   SELECT min(q.visible_at) FROM {schema}.orchestrator_queue AS q
                   WHERE q.instance_id || '' = b.instance_id AND q.begins AND q.visible_at > v_now AND {schema}.is_item_1(q.work_item)) END,
               v_now, b.ids, b.items, b.available, b.attempts, NULL::bigint, coalesce(b.instance_id = ANY (v_crowded), false),
               b.left_out_bytes, NULL::boolean
        FROM batch AS b
        LEFT JOIN {schema}.instances AS i ON i.instance_id = ANY (ARRAY[b.instance_id])
        LEFT JOIN {schema}.executions AS e
            ON e.instance_id = ANY (ARRAY[i.instance_id]) AND e.execution_id = i.current_execution_id
        ORDER BY b.available[1], b.ids[1];
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count < cardinality(v_claimed) THEN
            -- Another transaction has consumed the messages of a leased instance.
            DELETE FROM {schema}.instance_locks AS l
            WHERE l.instance_id = ANY (v_claimed) AND NOT EXISTS (
                SELECT 1 FROM {schema}.orchestrator_queue AS q
                WHERE q.instance_id = l.instance_id AND q.lock_token = l.lock_token OFFSET 0);
        END IF;
    END IF;

    IF cardinality(v_claimed) < v_wanted OR v_skipped >= {MANY_SKIPPED} THEN
        o_now := v_now;
        o_skipped := v_skipped >= {MANY_SKIPPED};
        IF p_asks_next AND cardinality(v_claimed) < v_wanted THEN
            o_next := least(
                (SELECT q.visible_at FROM {schema}.orchestrator_queue AS q
                 WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 > v_now ORDER BY q.visible_at + 0, q.id LIMIT 1),
                (SELECT min(l.locked_until) FROM {schema}.instance_locks AS l
                 WHERE l.locked_until > v_now AND l.locked_until < {held_until}));
        END IF;
        RETURN NEXT;
    END IF;
END $$;
