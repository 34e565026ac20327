SELECT id, queue, instance_id, work_item, reason, attempt_count, dead_at
FROM {schema}.dead_letters WHERE id < $1 ORDER BY id DESC LIMIT $2
