SELECT CASE WHEN d.key IS NULL THEN s.value ELSE d.value END
FROM (SELECT $1::text AS instance_id, $2::text AS key) AS wanted
LEFT JOIN {schema}.kv_delta AS d ON d.instance_id = wanted.instance_id AND d.key = wanted.key
LEFT JOIN {schema}.kv_store AS s ON s.instance_id = wanted.instance_id AND s.key = wanted.key
