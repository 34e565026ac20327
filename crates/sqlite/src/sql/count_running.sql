-- Instances whose current execution runs, by the partial index on executions.
SELECT count(*) FROM executions AS e
CROSS JOIN instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
WHERE e.status IN ('Running', 'Failed') AND e.status = 'Running'
