SELECT min(event_id) FROM {schema}.history
WHERE instance_id = $1 AND execution_id = $2 AND event_id = ANY ($3)
