-- What is leased under these secrets: turns by their instance, activities by their id. Of the leased activities all are looked at.
SELECT l.lock_token, l.instance_id, NULL::bigint FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY ($1)
UNION ALL
SELECT q.lock_token, NULL, q.id FROM {schema}.worker_queue AS q WHERE q.lock_token IS NOT NULL AND q.lock_token = ANY ($1)
