SELECT count(*), ifnull(sum(octet_length(value)), 0) FROM (
    SELECT value FROM kv_delta WHERE instance_id = ?1 AND value IS NOT NULL
    UNION ALL
    SELECT value FROM kv_store
    WHERE instance_id = ?1 AND key NOT IN (SELECT key FROM kv_delta WHERE instance_id = ?1)
)
