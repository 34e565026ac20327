-- The first event, the terminal events and the last event. A text above the limit is read as NULL.
SELECT CASE WHEN octet_length(event_data) <= ?3 THEN event_data END
FROM history
WHERE instance_id = ?1 AND execution_id = ?2 AND event_id IN (
    SELECT min(event_id) FROM history WHERE instance_id = ?1 AND execution_id = ?2
    UNION ALL SELECT max(event_id) FROM history WHERE instance_id = ?1 AND execution_id = ?2
    UNION ALL
    SELECT min(event_id) FROM history
    WHERE instance_id = ?1 AND execution_id = ?2
        AND event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')
    UNION ALL
    SELECT max(event_id) FROM history
    WHERE instance_id = ?1 AND execution_id = ?2
        AND event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')
)
ORDER BY event_id
