INSERT INTO worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag, delayed,
                          attempt_count, failures, last_error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
