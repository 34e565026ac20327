-- Exact totals, in one pass over each table. Gauges ask for less.
SELECT (SELECT count(*) FROM {schema}.executions), (SELECT count(*) FROM {schema}.history),
       count(*), count(*) FILTER (WHERE e.status = 'Running'), count(*) FILTER (WHERE e.status = 'Completed'),
       count(*) FILTER (WHERE e.status = 'Failed')
FROM {schema}.instances AS i
LEFT JOIN {schema}.executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
