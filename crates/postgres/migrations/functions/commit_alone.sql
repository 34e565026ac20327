-- commit_1 for a batch of one member, with scalar statements: the set-based statements of commit_1 would take most of the time of a
-- lone commit. Both have their body from commit_body.sql, and the store's model test runs every sequence with both. It hands off at most one
-- activity, and only if the turn schedules no other.
CREATE FUNCTION {schema}.commit_alone_1(
    {commit_parameters},
    OUT o_member integer, OUT o_answer integer, OUT o_at bigint, OUT o_more boolean, OUT o_id bigint, OUT o_secret bytea,
    OUT o_name text, OUT o_version text
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
BEGIN
    {commit_alone}
END $$;
