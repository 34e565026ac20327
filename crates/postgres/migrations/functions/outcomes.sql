-- Outcomes of instances, by their newest execution. The event that ended a failed execution is searched for only if no commit has noted
-- its id: a tool has appended it.
CREATE FUNCTION {schema}.outcomes_1(p_instances text[]) RETURNS TABLE (
    o_instance text, o_execution bigint, o_status text, o_output text, o_terminal text, o_custom_status text, o_custom_version bigint
) LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
BEGIN
    RETURN QUERY
    SELECT e.instance_id, e.execution_id, e.status, e.output,
           CASE WHEN e.status = 'Failed' THEN (
               SELECT h.event_data FROM {schema}.history AS h
               WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id
                   AND h.event_id = coalesce(e.terminal_event_id, (
                       SELECT min(t.event_id) FROM {schema}.history AS t
                       WHERE t.instance_id = e.instance_id AND t.execution_id = e.execution_id
                           AND t.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')))) END,
           i.custom_status, coalesce(i.custom_status_version, 0)
    FROM unnest(p_instances) AS wanted (instance_id)
    CROSS JOIN LATERAL (
        SELECT n.* FROM {schema}.executions AS n WHERE n.instance_id = wanted.instance_id ORDER BY n.execution_id DESC LIMIT 1
    ) AS e
    LEFT JOIN LATERAL (SELECT i.custom_status, i.custom_status_version FROM {schema}.instances AS i
                       WHERE i.instance_id = e.instance_id LIMIT 1) AS i ON true;
END $$;
