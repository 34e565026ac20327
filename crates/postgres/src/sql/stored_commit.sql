-- The stored parts of a commit: the number of its events with the same contents, the time of the last change of its execution,
-- and whether the outcome that its lease completed waits for a turn.
SELECT (SELECT count(*) FROM unnest($3::bigint[], $4::text[]) AS w (event_id, event_data)
        WHERE EXISTS (SELECT 1 FROM {schema}.history AS h
                      WHERE h.instance_id = $1 AND h.execution_id = $2 AND h.event_id = w.event_id
                          AND h.event_data = w.event_data OFFSET 0)) AS events,
       (SELECT e.updated_at FROM {schema}.executions AS e WHERE e.instance_id = $1 AND e.execution_id = $2) AS updated_at,
       EXISTS (SELECT 1 FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1 AND q.origin = $5) AS is_queued
