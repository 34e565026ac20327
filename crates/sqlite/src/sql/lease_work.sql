UPDATE worker_queue
SET lock_token = ?1 || id, locked_until = ?2, attempt_count = attempt_count + 1, delayed = 0
WHERE id = ?3
RETURNING id, work_item, lock_token, attempt_count, instance_id, session_id
