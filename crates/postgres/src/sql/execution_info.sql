SELECT e.status, e.output, e.started_at, e.completed_at,
       (SELECT count(*) FROM {schema}.history AS h WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id) AS events
FROM {schema}.executions AS e WHERE e.instance_id = $1 AND e.execution_id = $2
