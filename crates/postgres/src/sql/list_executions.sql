SELECT execution_id FROM {schema}.executions WHERE instance_id = $1 ORDER BY execution_id
