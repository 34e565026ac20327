-- Enqueues activities of clients.
CREATE FUNCTION {schema}.enqueue_activities_1(
    p_item text[], p_instance text[], p_execution bigint[], p_activity bigint[], p_session text[], p_tag text[]
) RETURNS void LANGUAGE sql VOLATILE
AS $$
    INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT w.item, {schema}.now_ms(), w.instance_id, w.execution_id, w.activity_id, w.session_id, w.tag
    FROM unnest(p_item, p_instance, p_execution, p_activity, p_session, p_tag) WITH ORDINALITY
        AS w (item, instance_id, execution_id, activity_id, session_id, tag, n)
    ORDER BY w.n
$$;
