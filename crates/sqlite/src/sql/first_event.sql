SELECT h.event_data FROM instances AS i
JOIN history AS h ON h.instance_id = i.instance_id AND h.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
ORDER BY h.event_id LIMIT 1
