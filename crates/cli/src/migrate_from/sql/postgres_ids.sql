-- Instances in the order of their creation, so that parents come first; then ids that only messages wait for.
SELECT a.instance_id FROM (
    SELECT instance_id, 0 AS part, created_at AS at FROM {schema}.instances
    UNION ALL
    SELECT q.instance_id, 1, min(q.created_at) FROM {schema}.orchestrator_queue AS q
    WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = q.instance_id) GROUP BY q.instance_id) AS a
ORDER BY a.part, a.at, a.instance_id
