SELECT printf('#%d %s activity=%d visible_at=%d attempts=%d locked=%d', id, instance_id, activity_id, visible_at, attempt_count, lock_token IS NOT NULL)
FROM worker_queue ORDER BY id LIMIT 10
