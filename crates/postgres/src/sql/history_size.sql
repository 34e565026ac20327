SELECT count(*), coalesce(sum(octet_length(event_data)), 0)::bigint
FROM {schema}.history WHERE instance_id = $1 AND execution_id = $2
