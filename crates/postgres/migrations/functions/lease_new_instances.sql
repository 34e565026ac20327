-- Leases instances that begin now, for hand-offs of turns: instances without a row, a history, a message or a lease. Called before the
-- messages are stored; returns the secrets of the leases that it took.
--
-- It waits for no lock. The advisory lock that fetches take comes first: the statement below sees every lease, and no other transaction
-- takes one meanwhile.
CREATE FUNCTION {schema}.lease_new_instances_1(p_instance text[], p_secret bytea[], p_lock_ms bigint[]) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    v_now    bigint := {schema}.now_ms();
    v_free   integer[];
    v_leased bytea[];
BEGIN
    SELECT array_agg(m.n::integer) INTO v_free FROM unnest(p_instance, p_secret) WITH ORDINALITY AS m (instance_id, secret, n)
    WHERE m.secret IS NOT NULL AND pg_try_advisory_xact_lock(hashtextextended(m.instance_id, {seed}));
    IF v_free IS NOT NULL THEN
        WITH leased AS (
            INSERT INTO {schema}.instance_locks AS l (instance_id, lock_token, locked_until, locked_at)
            SELECT p_instance[m.n], p_secret[m.n], v_now + p_lock_ms[m.n], v_now FROM unnest(v_free) AS m (n)
            WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.history AS h WHERE h.instance_id = p_instance[m.n] OFFSET 0)
                AND NOT EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = p_instance[m.n] OFFSET 0)
            ON CONFLICT (instance_id) DO NOTHING
            RETURNING l.lock_token
        )
        SELECT array_agg(l.lock_token) INTO v_leased FROM leased AS l;
    END IF;
    RETURN coalesce(v_leased, '{}');
END $$;
