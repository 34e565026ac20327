-- The terminal event of a failed execution is searched only if no commit stored its id, because a tool appended the event.
SELECT e.execution_id, e.status, e.output,
       (SELECT h.event_data FROM history AS h
        WHERE e.status = 'Failed' AND h.instance_id = e.instance_id AND h.execution_id = e.execution_id
          AND h.event_id = ifnull(e.terminal_event_id, (
              SELECT min(t.event_id) FROM history AS t
              WHERE t.instance_id = e.instance_id AND t.execution_id = e.execution_id
                AND t.event_type IN ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')))),
       i.custom_status, ifnull(i.custom_status_version, 0)
FROM executions AS e
LEFT JOIN instances AS i ON i.instance_id = e.instance_id
WHERE e.instance_id = ?1
ORDER BY e.execution_id DESC LIMIT 1
