SELECT h.event_data, h.execution_id FROM {schema}.history AS h
WHERE h.instance_id = $1 AND h.execution_id = coalesce(
    (SELECT max(e.execution_id) FROM {schema}.executions AS e WHERE e.instance_id = $1), 1)
ORDER BY h.event_id
