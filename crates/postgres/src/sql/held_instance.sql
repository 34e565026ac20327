SELECT instance_id, kind, actor, reason, held_at FROM {schema}.holds WHERE instance_id = $1
