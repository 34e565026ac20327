SELECT i.instance_id, i.parent_instance_id FROM {schema}.instances AS i
WHERE i.parent_instance_id = ANY ($1) AND i.instance_id <> ALL ($1) LIMIT 1
