-- Commits turns and completes activities.
--
-- The kind of a member is {KIND_TURN}: a turn under its lease; {KIND_ACTIVITY}: an activity with or without its outcome;
-- {KIND_AHEAD}: an activity with the turn that its outcome leads to, run ahead; {KIND_FUSED}: several activities with the turn that their
-- outcomes lead to, run ahead; or {KIND_START}: the start of an instance with its first turn. p_inputs: the number of messages of a
-- turn, or of fused outcomes. The answer for a member is {COMMIT_REFUSED}: it wrote nothing; {COMMIT_DONE}; or {COMMIT_QUEUED}: the
-- outcome of the activity is stored and waits for a turn, and the turn ahead is not stored. o_more: messages wait for the instance of
-- a turn. Any other failure is an error and undoes the batch.
--
-- A scheduled activity with a secret is stored as leased to a parked fetch (a hand-off): a row without a member has its id. Its
-- lease begins when it is stored, since the transaction may have waited for locks.
CREATE FUNCTION {schema}.commit_1(
    {commit_parameters}
) RETURNS TABLE (
    o_member integer, o_answer integer, o_at bigint, o_more boolean, o_id bigint, o_secret bytea, o_name text, o_version text,
    o_custom_status text, o_custom_version bigint
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now      bigint := {schema}.now_ms();
    v_seen     bigint;
    v_none     boolean[] := array_fill(false, ARRAY[cardinality(p_member)]);
    v_passed   boolean[] := v_none;
    -- The members whose turn is written.
    v_turn     boolean[] := v_none;
    v_members  integer[];
    v_sessions text[];
    v_names    text[];
    v_count    integer;
    v_wanted   integer;
    v_one      integer;
    -- Members whose lease names its messages, and these; instances that may have messages that are set aside.
    v_partial  integer[];
    v_covers   text[];
    v_aside    text[];
    v_covered  text;
    v_found    integer;
BEGIN
    {commit_of_batch}
END $$;
