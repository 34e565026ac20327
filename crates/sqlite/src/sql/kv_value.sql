SELECT iif(d.key IS NULL, s.value, d.value)
FROM (SELECT ?1 AS instance_id, ?2 AS key) AS wanted
LEFT JOIN kv_delta AS d ON d.instance_id = wanted.instance_id AND d.key = wanted.key
LEFT JOIN kv_store AS s ON s.instance_id = wanted.instance_id AND s.key = wanted.key
