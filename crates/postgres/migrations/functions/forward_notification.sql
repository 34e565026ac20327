-- Forwards a notification to one process that may have a fetchable turn, and to one that may have a fetchable activity. p_hops: the
-- number of processes, one after the other, that polled because of the notification and found nothing. p_waited_ms: the time for which an
-- item must have been fetchable. Only the first fetchable turns are compared.
CREATE FUNCTION {schema}.forward_notification_1(
    p_channel text, p_sender text, p_turns boolean, p_activities boolean, p_hops integer, p_waited_ms bigint
) RETURNS void LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now      bigint := {schema}.now_ms();
    v_since    bigint := v_now - p_waited_ms;
    v_pins     text[];
    v_turns    text;
    v_activities     text;
    v_sessions text[];
    v_holders  text[];
BEGIN
    IF p_turns THEN
        -- The empty pin, of an instance that begins, is for every process.
        SELECT array_agg(DISTINCT coalesce(r.pinned_key, '')) INTO v_pins FROM (
            SELECT e.pinned_key FROM (
                (SELECT q.instance_id FROM {schema}.orchestrator_queue AS q
                 WHERE NOT q.is_aside AND q.lock_token IS NULL AND q.visible_at + 0 <= v_since
                     AND coalesce((SELECT l.locked_until FROM {schema}.instance_locks AS l WHERE l.instance_id = q.instance_id), 0) <= v_now
                 ORDER BY q.visible_at + 0, q.id LIMIT 256)
                UNION ALL
                (SELECT l.instance_id FROM {schema}.instance_locks AS l
                 WHERE l.locked_until <= v_since AND l.has_aside ORDER BY l.locked_until LIMIT 256)
            ) AS q
            LEFT JOIN LATERAL (SELECT i.current_execution_id FROM {schema}.instances AS i
                               WHERE i.instance_id = q.instance_id LIMIT 1) AS i ON true
            LEFT JOIN LATERAL (SELECT e.pinned_key FROM {schema}.executions AS e
                               WHERE e.instance_id = q.instance_id AND e.execution_id = i.current_execution_id LIMIT 1) AS e ON true
        ) AS r;
        SELECT l.id INTO v_turns FROM {schema}.listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now AND EXISTS (
            SELECT 1 FROM unnest(v_pins) AS p (pin)
            WHERE p.pin = '' OR l.lowest IS NULL OR EXISTS (
                SELECT 1 FROM unnest(l.lowest, l.highest) AS r (lowest, highest)
                WHERE p.pin COLLATE "C" BETWEEN r.lowest AND r.highest))
        ORDER BY random() LIMIT 1;
    END IF;
    IF p_activities THEN
        SELECT array_agg(w.o_session), array_agg(w.o_holder) INTO v_sessions, v_holders FROM {schema}.waiting_sessions_1() AS w;
        SELECT l.id INTO v_activities FROM {schema}.listeners AS l
        WHERE l.activities AND l.id <> p_sender AND l.expires_at > v_now AND (
            EXISTS (SELECT 1 FROM unnest(l.tags) AS t (tag) WHERE EXISTS (
                SELECT 1 FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') = t.tag AND q.visible_at <= v_since OFFSET 0))
            OR l.tags IS NULL AND EXISTS (
                SELECT 1 FROM {schema}.worker_queue AS q
                WHERE q.lock_token IS NULL AND q.session_id IS NULL AND coalesce('=' || q.tag, '') >= '' AND q.visible_at <= v_since OFFSET 0)
            OR cardinality(l.owners) > 0 AND EXISTS (
                SELECT 1 FROM unnest(v_sessions, v_holders) AS s (session_id, holder)
                WHERE (s.holder IS NULL OR s.holder = ANY (l.owners)) AND EXISTS (
                    SELECT 1 FROM {schema}.worker_queue AS q
                    WHERE q.lock_token IS NULL AND q.session_id = s.session_id AND q.visible_at <= v_since
                        AND (l.tags IS NULL OR coalesce('=' || q.tag, '') = ANY (l.tags)) OFFSET 0)))
        ORDER BY random() LIMIT 1;
    END IF;
    IF v_turns IS NOT NULL OR v_activities IS NOT NULL THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_activities, '[]'::jsonb, p_hops)::text);
    END IF;
END $$;
