-- How instances stand, each by its newest execution.
-- The event that ended a failed execution is looked for only where no commit has noted it: a tool has appended it.
SELECT e.instance_id, e.execution_id, e.status, e.output,
       CASE WHEN e.status = 'Failed' THEN (
           SELECT h.event_data FROM {schema}.history AS h
           WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id
               AND h.event_id = coalesce(e.terminal_event_id, (
                   SELECT min(t.event_id) FROM {schema}.history AS t
                   WHERE t.instance_id = e.instance_id AND t.execution_id = e.execution_id
                       AND t.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')))) END,
       i.custom_status, coalesce(i.custom_status_version, 0)
FROM unnest($1::text[]) AS wanted (instance_id)
CROSS JOIN LATERAL (
    SELECT n.* FROM {schema}.executions AS n WHERE n.instance_id = wanted.instance_id ORDER BY n.execution_id DESC LIMIT 1
) AS e
LEFT JOIN {schema}.instances AS i ON i.instance_id = e.instance_id
