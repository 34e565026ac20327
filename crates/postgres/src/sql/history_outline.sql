-- The first event, those that ended the execution, and the last. Events that are too large to be one of these are not read.
SELECT CASE WHEN octet_length(h.event_data) <= $3 THEN h.event_data ELSE '' END
FROM {schema}.history AS h
WHERE h.instance_id = $1 AND h.execution_id = $2 AND (
    h.event_id = (SELECT min(f.event_id) FROM {schema}.history AS f WHERE f.instance_id = $1 AND f.execution_id = $2)
    OR h.event_id = (SELECT max(l.event_id) FROM {schema}.history AS l WHERE l.instance_id = $1 AND l.execution_id = $2)
    OR h.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew'))
ORDER BY h.event_id
