-- Lets instances whose lease has just been freed rest until now, if messages of them are behind: the ready index does not have these, so
-- fetches find the instance by its lease, like one whose lease is over. p_instances may be NULL.
CREATE FUNCTION {schema}.rest_1(p_instances text[]) RETURNS void LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_now bigint := {schema}.now_ms();
BEGIN
    INSERT INTO {schema}.instance_locks (instance_id, lock_token, locked_until, locked_at, has_behind)
    SELECT i.instance_id, '', v_now, v_now, true FROM unnest(p_instances) AS i (instance_id)
    WHERE EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = i.instance_id AND q.is_behind OFFSET 0)
    ORDER BY i.instance_id COLLATE "C"
    ON CONFLICT (instance_id) DO NOTHING;
END $$;
