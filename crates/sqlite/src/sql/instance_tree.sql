-- UNION, not UNION ALL: a cycle in a damaged store ends the walk.
WITH RECURSIVE tree (instance_id, depth) AS (
    SELECT ?1, 0
    UNION
    SELECT i.instance_id, 1 FROM instances AS i JOIN tree AS t ON i.parent_instance_id = t.instance_id
)
SELECT instance_id FROM tree GROUP BY instance_id ORDER BY min(depth), instance_id
