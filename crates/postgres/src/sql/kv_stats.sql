-- An escaped character is stored as two, see text.rs.
SELECT count(*) AS keys,
       coalesce(sum(octet_length(v.value) - (length(v.value) - length(replace(v.value, chr(1), '')))), 0)::bigint AS bytes
FROM (
    SELECT d.value FROM {schema}.kv_delta AS d WHERE d.instance_id = $1 AND d.value IS NOT NULL
    UNION ALL
    SELECT s.value FROM {schema}.kv_store AS s
    WHERE s.instance_id = $1
        AND NOT EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = $1 AND d.key = s.key)
) AS v
