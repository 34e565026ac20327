-- Makes this connection the sign that an owner of leases is alive: the connection holds the lock of the owner until it ends. Returns the
-- server process of the connection, or NULL if another connection holds the lock. A look at the owner holds it for a moment only.
CREATE FUNCTION {schema}.own_1(p_owner bigint) RETURNS integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
AS $$
BEGIN
    BEGIN
        PERFORM pg_advisory_lock(p_owner);
    EXCEPTION WHEN lock_not_available THEN
        RETURN NULL;
    END;
    INSERT INTO {schema}.owners (owner) VALUES (p_owner) ON CONFLICT (owner) DO NOTHING;
    RETURN pg_backend_pid();
END $$;
