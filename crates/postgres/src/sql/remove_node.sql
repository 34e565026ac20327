DELETE FROM {schema}.nodes WHERE node_id = $1 RETURNING true
