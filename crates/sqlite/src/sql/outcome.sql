SELECT e.execution_id, e.status, e.output,
       (SELECT h.event_data FROM history AS h
        WHERE h.instance_id = e.instance_id AND h.execution_id = e.execution_id AND h.event_id = e.terminal_event_id),
       i.custom_status, ifnull(i.custom_status_version, 0)
FROM executions AS e
LEFT JOIN instances AS i ON i.instance_id = e.instance_id
WHERE e.instance_id = ?1
ORDER BY e.execution_id DESC LIMIT 1
