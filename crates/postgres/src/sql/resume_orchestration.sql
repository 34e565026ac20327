DELETE FROM {schema}.paused_orchestrations WHERE orchestration = $1 RETURNING true
