SELECT count(h.event_id), ifnull(sum(octet_length(h.event_data)), 0)
FROM instances AS i
LEFT JOIN history AS h ON h.instance_id = i.instance_id AND h.execution_id = i.current_execution_id
WHERE i.instance_id = ?1
GROUP BY i.instance_id
