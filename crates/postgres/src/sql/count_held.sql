-- The scalar subquery counts the messages of one instance after the other, whatever the planner thinks of the tables.
SELECT count(*) AS instances, coalesce(sum((
    SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = h.instance_id)), 0)::bigint AS messages
FROM {schema}.holds AS h
