-- Registers the notifications that a process wants and its eligibility, and notifies the other processes of the registration.
CREATE FUNCTION {schema}.register_listener_1(
    p_channel text, p_id text, p_turns boolean, p_activities boolean, p_watches boolean,
    p_lowest text[], p_highest text[], p_tags text[], p_owners text[], p_for bigint
) RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    DELETE FROM {schema}.listeners AS l WHERE l.expires_at < v_now - 60000;
    INSERT INTO {schema}.listeners AS l (id, turns, activities, watches, lowest, highest, tags, owners, expires_at)
    VALUES (p_id, p_turns, p_activities, p_watches, p_lowest, p_highest, p_tags, p_owners, v_now + p_for)
    ON CONFLICT (id) DO UPDATE
    SET turns = excluded.turns, activities = excluded.activities, watches = excluded.watches, lowest = excluded.lowest,
        highest = excluded.highest, tags = excluded.tags, owners = excluded.owners, expires_at = excluded.expires_at;
    PERFORM pg_notify(p_channel, jsonb_build_array(p_id, p_turns, p_activities, p_watches, p_for)::text);
END $$;
