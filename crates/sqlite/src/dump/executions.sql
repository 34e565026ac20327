SELECT * FROM executions
