-- Counts up to the bound: the caller needs to know only whether there are few.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.executions AS e
    WHERE e.status IN ('Running', 'Failed') AND e.status = $1 LIMIT $2) AS found
