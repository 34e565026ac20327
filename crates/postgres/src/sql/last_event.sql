SELECT coalesce(max(event_id), 0) FROM {schema}.history WHERE instance_id = $1 AND execution_id = $2
