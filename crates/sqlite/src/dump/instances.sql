-- A turn that changes only its execution stores its time in the execution.
SELECT i.*, max(i.updated_at, ifnull((
    SELECT max(e.updated_at) FROM executions AS e WHERE e.instance_id = i.instance_id
), 0)) AS touched_at
FROM instances AS i
