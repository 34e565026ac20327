-- Makes leased activities dead letters, each with its reason.
CREATE FUNCTION {schema}.dead_letter_activities_1(p_ids bigint[], p_secrets bytea[], p_reasons text[]) RETURNS integer LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_count integer;
BEGIN
    WITH gone AS (
        DELETE FROM {schema}.worker_queue AS q USING unnest(p_ids, p_secrets, p_reasons) AS m (id, secret, reason)
        WHERE q.id = ANY (ARRAY[m.id]) AND q.lock_token = m.secret
        RETURNING q.id, q.instance_id, q.work_item, q.attempt_count, m.reason
    )
    INSERT INTO {schema}.dead_letters (queue, instance_id, work_item, reason, attempt_count, dead_at)
    SELECT 'worker', g.instance_id, g.work_item, g.reason, g.attempt_count - 1, {schema}.now_ms() FROM gone AS g ORDER BY g.id;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;
