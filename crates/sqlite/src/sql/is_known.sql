-- Whether the store has a row, an event of the first execution, a message or a lease of an instance.
SELECT EXISTS (SELECT 1 FROM instances WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM orchestrator_queue WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM instance_locks WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM executions WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM history WHERE instance_id = ?1 AND execution_id = 1)
