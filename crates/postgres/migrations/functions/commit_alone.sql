-- commit_1 for a batch of one member, with scalar statements: the set-based statements of commit_1 would take most of the time of a
-- lone commit. Both have their body from commit_body.sql, and the store's model test runs every sequence with both. It hands off at most one
-- activity, and only if the turn schedules no other. With a turn that ends its execution it answers the custom status, so that watches of
-- the instance need not read it.
--
-- A call that is a transaction of its own (p_is_transaction) saves the server BEGIN and COMMIT, and the client two answers. It sets the
-- limits of the transaction itself: p_lock_ms for the wait for one lock, p_limit_ms for all of it. A session that begins transactions
-- with other properties than lanes do refuses the call.
CREATE FUNCTION {schema}.commit_alone_1(
    {commit_parameters},
    p_is_transaction boolean, p_lock_ms bigint, p_limit_ms bigint,
    OUT o_member integer, OUT o_answer integer, OUT o_at bigint, OUT o_more boolean, OUT o_id bigint, OUT o_secret bytea,
    OUT o_name text, OUT o_version text, OUT o_custom_status text, OUT o_custom_version bigint
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now       bigint := {schema}.now_ms();
    v_kind      integer := p_kind[1];
    v_instance  text := p_instance[1];
    v_secret    bytea := p_secret[1];
    v_execution bigint := p_execution[1];
    v_status    text := p_status[1];
    v_name      text := p_name[1];
    v_version   text := p_version[1];
    v_ended     boolean := p_ended[1];
    v_passed    boolean := false;
    v_turn      boolean := false;
    v_seen      bigint;
    v_sessions  text[];
    v_names     text[];
    v_count     integer;
    v_aside     text[];
    v_covers    bigint[];
    v_begins    boolean;
    -- The result of set_config, which nothing reads: an assignment takes less time than PERFORM.
    v_set       text;
BEGIN
    IF p_is_transaction THEN
        -- A standby refuses the first write with its own error, by which the client looks for the primary.
        IF current_setting('transaction_isolation') <> 'read committed'
            OR current_setting('transaction_read_only') = 'on' AND NOT pg_is_in_recovery() THEN
            RAISE EXCEPTION 'transactions of this session begin as % and read only is %',
                current_setting('transaction_isolation'), current_setting('transaction_read_only') USING ERRCODE = 'OL002';
        END IF;
        IF p_lock_ms IS NOT NULL THEN
            v_set := set_config('lock_timeout', p_lock_ms::text, true);
        END IF;
    END IF;
    {commit_alone}
    IF clock_timestamp() > statement_timestamp() + p_limit_ms * interval '1 millisecond' THEN
        RAISE EXCEPTION 'the commit took longer than % ms', p_limit_ms USING ERRCODE = 'query_canceled';
    END IF;
END $$;
