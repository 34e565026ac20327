-- The roots first. UNION, not UNION ALL: a cycle in a damaged store ends the walk.
WITH RECURSIVE tree (instance_id) AS (
    SELECT r.root COLLATE "C" FROM unnest($1::text[]) AS r (root)
    UNION
    SELECT i.instance_id FROM {schema}.instances AS i JOIN tree AS t ON i.parent_instance_id = t.instance_id
)
SELECT t.instance_id FROM tree AS t ORDER BY t.instance_id <> ALL ($1), t.instance_id
