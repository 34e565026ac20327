-- Whoever would give one of them a child, or end it, waits; the rest of the deletion sees what they did.
SELECT i.instance_id FROM {schema}.instances AS i WHERE i.instance_id = ANY ($1) ORDER BY i.instance_id FOR UPDATE
