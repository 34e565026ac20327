-- Keeps the places in line of instances whose leases this transaction has removed and that have messages that are set aside: without a
-- row in instance_locks no fetch would find these. The rows end in the order in which they come, and so long ago that the instances are
-- free even if the clock is set back.
CREATE FUNCTION {schema}.keep_places_1(p_instances text[]) RETURNS void LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at, has_aside)
    SELECT f.instance_id, NULL, v_now - 1000000000000, v_now, true FROM unnest(p_instances) AS f (instance_id)
    WHERE EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = f.instance_id AND q.is_aside OFFSET 0)
    ORDER BY f.instance_id COLLATE "C"
    ON CONFLICT (instance_id) DO UPDATE SET has_aside = true;
END $$;
