SELECT coalesce(max(execution_id), 1) FROM {schema}.executions WHERE instance_id = $1
