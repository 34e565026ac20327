-- Transactions that give one of these instances a child, or end it, wait for the deletion or are visible to it.
SELECT i.instance_id FROM {schema}.instances AS i WHERE i.instance_id = ANY ($1) ORDER BY i.instance_id FOR UPDATE
