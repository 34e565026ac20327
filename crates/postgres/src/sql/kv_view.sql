SELECT d.key, d.value FROM {schema}.kv_delta AS d WHERE d.instance_id = $1 AND d.value IS NOT NULL
UNION ALL
SELECT s.key, s.value FROM {schema}.kv_store AS s
WHERE s.instance_id = $1
    AND NOT EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = $1 AND d.key = s.key)
