SELECT instance_id FROM {schema}.instances WHERE parent_instance_id = $1 ORDER BY created_as
