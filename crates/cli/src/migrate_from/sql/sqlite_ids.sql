-- Instances in the order of their creation, so that parents come first; then ids that only messages wait for.
SELECT instance_id FROM (
    SELECT instance_id, 0 AS part, rowid AS n FROM instances
    UNION ALL
    SELECT instance_id, 1, min(id) FROM orchestrator_queue
    WHERE instance_id NOT IN (SELECT instance_id FROM instances) GROUP BY instance_id)
ORDER BY part, n
