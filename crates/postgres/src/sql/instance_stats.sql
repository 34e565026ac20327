SELECT count(h.event_id) AS events, coalesce(sum(octet_length(h.event_data)), 0)::bigint AS bytes,
       (SELECT f.event_data FROM {schema}.history AS f
        WHERE f.instance_id = i.instance_id AND f.execution_id = i.current_execution_id ORDER BY f.event_id LIMIT 1) AS first_event
FROM {schema}.instances AS i
LEFT JOIN {schema}.history AS h ON h.instance_id = i.instance_id AND h.execution_id = i.current_execution_id
WHERE i.instance_id = $1
GROUP BY i.instance_id, i.current_execution_id
