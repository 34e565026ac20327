-- An instance exists from its first turn on; before that, its start waits in the queue.
SELECT instance_id FROM instances
UNION
SELECT instance_id FROM orchestrator_queue
