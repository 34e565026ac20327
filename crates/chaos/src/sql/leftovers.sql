-- Rows that must be gone after all instances have ended and all workers have stopped.
SELECT 'message for ''' || instance_id || '''' FROM orchestrator_queue
UNION ALL SELECT 'activity of ''' || instance_id || '''' FROM worker_queue
UNION ALL SELECT 'lease on ''' || instance_id || '''' FROM instance_locks
UNION ALL SELECT 'dead letter: ' || reason FROM dead_letters
UNION ALL SELECT 'execution without instance: ''' || e.instance_id || ''''
FROM executions AS e WHERE NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = e.instance_id)
