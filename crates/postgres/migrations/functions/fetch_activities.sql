-- Leases activities, at most one for each secret. The n-th lease has the n-th secret, and the n-th owner of sessions or none. Tags are
-- keys of the index of fetchable activities; NULL accepts every tag. If there are fewer activities than secrets, a last row without a
-- lease tells whether any activity has a session, and, if p_asks_next, the time at which to poll again.
CREATE FUNCTION {schema}.fetch_activities_1(
    p_secrets bytea[], p_owners text[], p_session_ms bigint[], p_lock_ms bigint, p_tags text[], p_asks_next boolean
) RETURNS TABLE (
    o_nth integer, o_id bigint, o_item text, o_instance text, o_session text, o_attempts integer, o_name text, o_version text,
    o_now bigint, o_next bigint, o_secret bytea, o_sessions boolean, o_failures integer, o_last_error text
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now    bigint := {schema}.now_ms();
    v_tags   text[] := p_tags;
    v_wanted integer := cardinality(p_secrets);
    v_ids    bigint[] := '{}';
    v_nths   integer[] := '{}';
    v_free   integer[];
    v_nth    integer;
    v_open   text[];
    v_id     bigint;
    v_row    record;
    v_over   boolean;
    v_owned  boolean;
BEGIN
    v_owned := cardinality(array_remove(p_owners, NULL)) > 0;
    v_over := EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now);
    v_owned := v_owned AND (
        EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.lock_token IS NULL AND q.session_id IS NOT NULL)
        OR v_over AND EXISTS (SELECT 1 FROM {schema}.worker_queue AS q
                              WHERE q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.session_id IS NOT NULL OFFSET 0));
    IF v_tags IS NULL THEN
        -- Every tag of free activities, found by skipping from one to the next.
        WITH RECURSIVE tags (tag) AS (
            (SELECT coalesce('=' || q.tag, '') FROM {schema}.worker_queue AS q
             WHERE q.lock_token IS NULL AND q.session_id IS NULL ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            UNION ALL
            SELECT (SELECT coalesce('=' || q.tag, '') FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') > t.tag
                    ORDER BY coalesce('=' || q.tag, ''), q.id LIMIT 1)
            FROM tags AS t WHERE t.tag IS NOT NULL
        )
        SELECT array_agg(t.tag) INTO v_tags FROM tags AS t WHERE t.tag IS NOT NULL;
    END IF;
    IF v_owned THEN
        -- The holder of a session decides which owners may lease its activities, so activities are compared one by one, oldest first.
        -- Of each session and tag, only as many activities are compared as could be leased.
        SELECT array_agg(s.n ORDER BY s.n) INTO v_free FROM generate_series(1, v_wanted) AS s (n);
        SELECT array_agg(w.o_session) INTO v_open FROM {schema}.waiting_sessions_1() AS w
        WHERE w.o_holder IS NULL OR w.o_holder = ANY (p_owners);
        FOR v_id IN
            SELECT a.id FROM (
                SELECT f.id FROM unnest(v_open) AS o (session_id)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = o.session_id AND q.visible_at <= v_now
                        AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    ORDER BY q.id LIMIT v_wanted
                ) AS f
                UNION ALL
                SELECT f.id FROM unnest(v_tags) AS t (tag)
                CROSS JOIN LATERAL (
                    SELECT q.id FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
                ) AS f
                UNION ALL
                SELECT q.id FROM {schema}.worker_queue AS q
                LEFT JOIN LATERAL (SELECT s.* FROM {schema}.sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
                WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                    AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
                    AND (s.session_id IS NULL OR s.locked_until <= v_now OR s.worker_id = ANY (p_owners))
            ) AS a ORDER BY a.id
        LOOP
            EXIT WHEN cardinality(v_free) = 0;
            SELECT q.id, q.session_id, CASE WHEN s.locked_until > v_now THEN s.worker_id END AS holder,
                   q.session_id IS NOT NULL AND {schema}.is_item_1(q.work_item) AS claims
            INTO v_row FROM {schema}.worker_queue AS q
            LEFT JOIN LATERAL (SELECT s.* FROM {schema}.sessions AS s WHERE s.session_id = q.session_id LIMIT 1) AS s ON true
            WHERE q.id = v_id AND (q.lock_token IS NULL OR q.locked_until <= v_now) AND q.visible_at <= v_now
            FOR UPDATE OF q SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            SELECT f.n INTO v_nth FROM unnest(v_free) WITH ORDINALITY AS f (n, place)
            WHERE v_row.session_id IS NULL
                OR (p_owners[f.n] IS NOT NULL AND (v_row.holder IS NULL OR v_row.holder = p_owners[f.n]))
            ORDER BY f.place LIMIT 1;
            CONTINUE WHEN NOT FOUND;
            IF v_row.claims THEN
                INSERT INTO {schema}.sessions AS s (session_id, worker_id, locked_until, last_activity_at, owner)
                VALUES (v_row.session_id, p_owners[v_nth], v_now + p_session_ms[v_nth], v_now,
                        substring(p_secrets[v_nth] FROM 1 FOR 8))
                ON CONFLICT (session_id) DO UPDATE
                SET worker_id = excluded.worker_id, locked_until = excluded.locked_until,
                    last_activity_at = excluded.last_activity_at, owner = excluded.owner
                WHERE s.locked_until <= v_now OR s.worker_id = excluded.worker_id;
                CONTINUE WHEN NOT FOUND;
            END IF;
            v_ids := v_ids || v_row.id;
            v_nths := v_nths || v_nth;
            v_free := array_remove(v_free, v_nth);
        END LOOP;
    ELSIF NOT v_over AND cardinality(v_tags) = 1 THEN
        -- The most common fetch: one tag, and no sessions.
        SELECT coalesce(array_agg(f.id), '{}') INTO v_ids FROM (
            SELECT q.id FROM {schema}.worker_queue AS q
            WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = v_tags[1] AND q.visible_at <= v_now
                AND q.session_id IS NULL
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ) AS f;
        v_nths := (ARRAY(SELECT generate_series(1, cardinality(v_ids))));
    ELSE
        WITH free AS MATERIALIZED (
            SELECT f.id FROM unnest(v_tags) AS t (tag)
            CROSS JOIN LATERAL (
                SELECT q.id FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_now
                    AND q.session_id IS NULL
                ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
            ) AS f
        ), over AS MATERIALIZED (
            SELECT q.id FROM {schema}.worker_queue AS q
            WHERE v_over AND q.lock_token IS NOT NULL AND q.locked_until <= v_now AND q.visible_at <= v_now
                AND q.session_id IS NULL AND (p_tags IS NULL OR coalesce('=' || q.tag, '') = ANY (p_tags))
            ORDER BY q.id LIMIT v_wanted FOR UPDATE SKIP LOCKED
        ), line AS (
            SELECT a.id FROM (SELECT f.id FROM free AS f UNION ALL SELECT o.id FROM over AS o) AS a
            ORDER BY a.id LIMIT v_wanted
        )
        SELECT coalesce(array_agg(n.id ORDER BY n.id), '{}'), coalesce(array_agg(n.nth ORDER BY n.id), '{}')
        INTO v_ids, v_nths FROM (SELECT i.id, (row_number() OVER (ORDER BY i.id))::integer AS nth FROM line AS i) AS n;
    END IF;

    IF cardinality(v_ids) > 0 THEN
        v_now := {schema}.now_ms();
        RETURN QUERY
        WITH leased AS (
            UPDATE {schema}.worker_queue AS q
            SET lock_token = p_secrets[t.nth], locked_until = v_now + p_lock_ms, attempt_count = q.attempt_count + 1,
                delayed = false
            FROM unnest(v_ids, v_nths) AS t (id, nth) WHERE q.id = ANY (ARRAY[t.id])
            RETURNING t.nth, q.id, q.work_item, q.instance_id, q.session_id, q.attempt_count, q.failures, q.last_error
        )
        SELECT l.nth, l.id, l.work_item, l.instance_id::text, l.session_id::text, l.attempt_count,
               i.orchestration_name, coalesce(i.orchestration_version, 'unknown'), v_now, NULL::bigint, p_secrets[l.nth], NULL::boolean,
               l.failures, l.last_error
        FROM leased AS l
        LEFT JOIN LATERAL (SELECT i.orchestration_name, i.orchestration_version FROM {schema}.instances AS i
                           WHERE i.instance_id = l.instance_id LIMIT 1) AS i ON true
        ORDER BY l.id;
    END IF;
    IF cardinality(v_ids) < v_wanted THEN
        o_now := v_now;
        o_sessions := EXISTS (SELECT 1 FROM {schema}.worker_queue AS q WHERE q.session_id IS NOT NULL);
        IF p_asks_next THEN
            o_next := least(
                (SELECT min(q.visible_at) FROM {schema}.worker_queue AS q WHERE q.delayed AND q.visible_at > v_now),
                (SELECT min(q.locked_until) FROM {schema}.worker_queue AS q
                 WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now),
                CASE WHEN o_sessions THEN (SELECT min(s.locked_until) FROM {schema}.sessions AS s WHERE s.locked_until > v_now) END);
        END IF;
        RETURN NEXT;
    END IF;
END $$;
