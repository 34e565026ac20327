-- Leases with these secrets: turns by their instance, activities by the id of their row. All leased activities are compared.
SELECT l.lock_token, l.instance_id, NULL::bigint AS activity_id FROM {schema}.instance_locks AS l WHERE l.lock_token = ANY ($1)
UNION ALL
SELECT q.lock_token, NULL, q.id FROM {schema}.worker_queue AS q WHERE q.lock_token IS NOT NULL AND q.lock_token = ANY ($1)
