-- Exact totals, in one pass over each table. Gauges ask for less.
SELECT (SELECT count(*) FROM {schema}.executions) AS executions, (SELECT count(*) FROM {schema}.history) AS events,
       count(*) AS instances, count(*) FILTER (WHERE e.status = 'Running') AS running,
       count(*) FILTER (WHERE e.status = 'Completed') AS completed, count(*) FILTER (WHERE e.status = 'Failed') AS failed
FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
