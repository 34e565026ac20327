-- Copies the time of the last turn to the instance, because a pruned execution may hold it.
UPDATE instances
SET updated_at = max(updated_at, ifnull((SELECT max(e.updated_at) FROM executions AS e WHERE e.instance_id = ?1), 0))
WHERE instance_id = ?1
