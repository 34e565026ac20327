SELECT printf('#%d %s visible_at=%d attempts=%d locked=%d', id, instance_id, visible_at, attempt_count, lock_token IS NOT NULL)
FROM orchestrator_queue ORDER BY id LIMIT 10
