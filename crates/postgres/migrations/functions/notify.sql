-- Notifies one process that is registered for turns, one that is registered for activities, and all that watch instances. It sends one
-- notification at most: a notification takes a lock that every other commit with a notification waits for.
CREATE FUNCTION {schema}.notify_1(p_channel text, p_sender text, p_turns boolean, p_activities boolean, p_ended text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now   bigint := {schema}.now_ms();
    v_turns text;
    v_activities  text;
    v_ended text[] := '{}';
BEGIN
    IF p_turns THEN
        SELECT l.id INTO v_turns FROM {schema}.listeners AS l
        WHERE l.turns AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF p_activities THEN
        SELECT l.id INTO v_activities FROM {schema}.listeners AS l
        WHERE l.activities AND l.id <> p_sender AND l.expires_at > v_now ORDER BY random() LIMIT 1;
    END IF;
    IF cardinality(p_ended) > 0
        AND EXISTS (SELECT 1 FROM {schema}.listeners AS l WHERE l.watches AND l.id <> p_sender AND l.expires_at > v_now) THEN
        v_ended := p_ended;
    END IF;
    IF v_turns IS NOT NULL OR v_activities IS NOT NULL OR cardinality(v_ended) > 0 THEN
        PERFORM pg_notify(p_channel, jsonb_build_array(p_sender, v_turns, v_activities, to_jsonb(v_ended), 0)::text);
    END IF;
END $$;
