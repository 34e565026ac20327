-- With the scalar subquery, every plan counts the messages of one instance after the other.
SELECT count(*) AS instances, coalesce(sum((
    SELECT count(*) FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = h.instance_id)), 0)::bigint AS messages
FROM {schema}.holds AS h
