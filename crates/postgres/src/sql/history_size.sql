SELECT count(*) AS events, coalesce(sum(octet_length(event_data)), 0)::bigint AS bytes
FROM {schema}.history WHERE instance_id = $1 AND execution_id = $2
