SELECT queue, instance_id, work_item, reason, attempt_count, dead_at
FROM {schema}.dead_letters ORDER BY id DESC LIMIT $1
