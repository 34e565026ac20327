-- The condition of count_orphans.
DELETE FROM worker_queue WHERE worker_queue.lock_token IS NULL
  AND NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = worker_queue.instance_id)
  AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.instance_id = worker_queue.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = worker_queue.instance_id)
