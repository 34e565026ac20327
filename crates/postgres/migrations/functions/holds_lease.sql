-- Whether an owner holds a lease.
CREATE FUNCTION {schema}.holds_lease_1(p_owner bigint) RETURNS boolean LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now  bigint := {schema}.now_ms();
    v_name bytea := int8send(p_owner);
BEGIN
    RETURN EXISTS (SELECT 1 FROM {schema}.instance_locks AS l
                   WHERE l.locked_until > v_now AND substring(l.lock_token FROM 1 FOR 8) = v_name)
        OR EXISTS (SELECT 1 FROM {schema}.worker_queue AS q
                   WHERE q.lock_token IS NOT NULL AND q.locked_until > v_now AND substring(q.lock_token FROM 1 FOR 8) = v_name)
        OR EXISTS (SELECT 1 FROM {schema}.sessions AS s WHERE s.locked_until > v_now AND s.owner = v_name);
END $$;
