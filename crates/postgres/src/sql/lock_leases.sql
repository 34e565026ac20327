-- Locks in the order of a commit, which takes the lease first.
SELECT l.instance_id FROM {schema}.instance_locks AS l WHERE l.instance_id = ANY ($1) ORDER BY l.instance_id FOR UPDATE
