-- The instance keeps the time of its last turn, which an execution that goes may hold.
UPDATE instances
SET updated_at = max(updated_at, ifnull((SELECT max(e.updated_at) FROM executions AS e WHERE e.instance_id = ?1), 0))
WHERE instance_id = ?1
