SELECT parent_instance_id FROM {schema}.instances WHERE instance_id = $1
