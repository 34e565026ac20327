SELECT coalesce(max(event_id), 0),
       coalesce(bool_or(event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')), false)
FROM {schema}.history WHERE instance_id = $1 AND execution_id = $2
