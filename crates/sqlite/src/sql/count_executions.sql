SELECT count(*) FROM executions
