-- The instance keeps the time of its last turn, which a pruned execution may hold.
WITH kept AS (
    UPDATE {schema}.instances AS i
    SET updated_at = greatest(i.updated_at, (SELECT max(e.updated_at) FROM {schema}.executions AS e WHERE e.instance_id = $1))
    WHERE i.instance_id = $1
), events AS (
    DELETE FROM {schema}.history AS h WHERE h.instance_id = $1 AND h.execution_id = ANY ($2) RETURNING 1
), executions AS (
    DELETE FROM {schema}.executions AS e WHERE e.instance_id = $1 AND e.execution_id = ANY ($2) RETURNING 1
)
SELECT (SELECT count(*) FROM executions) AS executions, (SELECT count(*) FROM events) AS events
