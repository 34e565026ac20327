SELECT instance_id FROM executions AS e
WHERE last_event_id <> ifnull((
    SELECT max(event_id) FROM history AS h WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id
), 0)
