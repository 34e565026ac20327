-- Instances whose current execution runs or failed, newest first, by the partial index on executions.
SELECT i.instance_id FROM executions AS e
CROSS JOIN instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
WHERE e.status IN ('Running', 'Failed') AND e.status = ?1
ORDER BY i.rowid DESC
