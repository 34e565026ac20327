SELECT e.instance_id, e.last_event_id, e.status, i.instance_id IS NOT NULL
FROM executions e LEFT JOIN instances i ON i.instance_id = e.instance_id
