-- An instance exists from its first turn on; before that, its start is queued.
SELECT instance_id FROM instances
UNION
SELECT instance_id FROM orchestrator_queue
