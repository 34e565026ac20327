-- Everything of an instance, in the parts and columns of ExportRow. A time is a text in seconds, or a number in milliseconds.
SELECT 0 AS part, i.orchestration_name AS t1, i.orchestration_version AS t2, i.parent_instance_id AS t3, i.custom_status AS t4,
       i.current_execution_id AS n1, i.custom_status_version AS n2,
       iif(typeof(i.created_at) = 'text', CAST(strftime('%s', i.created_at) AS INTEGER) * 1000, i.created_at) AS n3,
       iif(typeof(i.updated_at) = 'text', CAST(strftime('%s', i.updated_at) AS INTEGER) * 1000, i.updated_at) AS n4
FROM instances AS i WHERE i.instance_id = ?1
UNION ALL
SELECT 1, e.status, e.output,
       e.duroxide_version_major || '.' || e.duroxide_version_minor || '.' || e.duroxide_version_patch, NULL, e.execution_id,
       iif(typeof(e.started_at) = 'text', CAST(strftime('%s', e.started_at) AS INTEGER) * 1000, e.started_at),
       iif(typeof(e.completed_at) = 'text', CAST(strftime('%s', e.completed_at) AS INTEGER) * 1000, e.completed_at), NULL
FROM executions AS e WHERE e.instance_id = ?1
UNION ALL
SELECT 2, h.event_data, NULL, NULL, NULL, h.execution_id, h.event_id, NULL, NULL FROM history AS h WHERE h.instance_id = ?1
UNION ALL
SELECT 3, s.key, s.value, NULL, NULL, s.last_updated_at_ms, NULL, NULL, NULL FROM kv_store AS s WHERE s.instance_id = ?1
UNION ALL
SELECT 4, d.key, d.value, NULL, NULL, d.last_updated_at_ms, NULL, NULL, NULL FROM kv_delta AS d WHERE d.instance_id = ?1
UNION ALL
SELECT 5, q.work_item, NULL, NULL, NULL, iif(typeof(q.visible_at) = 'text', CAST(strftime('%s', q.visible_at) AS INTEGER) * 1000, q.visible_at), q.id,
       iif(typeof(q.visible_at) = 'text', CAST(strftime('%s', q.visible_at) AS INTEGER) * 1000, q.visible_at), q.attempt_count
FROM orchestrator_queue AS q WHERE q.instance_id = ?1
UNION ALL
SELECT 6, w.work_item, NULL, NULL, NULL, w.id, w.visible_at, w.attempt_count, 0 FROM worker_queue AS w WHERE w.instance_id = ?1
ORDER BY part, n1, n2
