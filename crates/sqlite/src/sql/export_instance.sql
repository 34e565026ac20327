-- All rows of an instance in one statement, so that they are those of one moment. The parts and their columns are those of
-- ExportRow.
SELECT 0 AS part, i.orchestration_name AS t1, i.orchestration_version AS t2, i.parent_instance_id AS t3, i.custom_status AS t4,
       i.current_execution_id AS n1, i.custom_status_version AS n2, i.created_at AS n3, i.updated_at AS n4
FROM instances AS i WHERE i.instance_id = ?1
UNION ALL
SELECT 1, e.status, e.output,
       e.duroxide_version_major || '.' || e.duroxide_version_minor || '.' || e.duroxide_version_patch
           || iif(ifnull(e.duroxide_version_pre, '') = '', '', '-' || e.duroxide_version_pre),
       NULL, e.execution_id, e.started_at, e.completed_at, NULL
FROM executions AS e WHERE e.instance_id = ?1
UNION ALL
SELECT 2, h.event_data, NULL, NULL, NULL, h.execution_id, h.event_id, NULL, NULL FROM history AS h WHERE h.instance_id = ?1
UNION ALL
SELECT 3, s.key, s.value, NULL, NULL, s.last_updated_at_ms, NULL, NULL, NULL FROM kv_store AS s WHERE s.instance_id = ?1
UNION ALL
SELECT 4, d.key, d.value, NULL, NULL, d.last_updated_at_ms, NULL, NULL, NULL FROM kv_delta AS d WHERE d.instance_id = ?1
UNION ALL
SELECT 5, iif(q.external_bytes IS NULL, q.work_item,
              (SELECT t.work_item FROM message_texts AS t WHERE t.message_id = q.id)),
       NULL, NULL, NULL, q.available_at, q.id, q.visible_at, q.attempt_count
FROM orchestrator_queue AS q WHERE q.instance_id = ?1
UNION ALL
SELECT 6, w.work_item, w.last_error, NULL, NULL, w.id, w.visible_at, w.attempt_count, w.failures
FROM worker_queue AS w WHERE w.instance_id = ?1
UNION ALL
SELECT 7, o.kind, o.actor, o.reason, NULL, o.held_at, NULL, NULL, NULL FROM holds AS o WHERE o.instance_id = ?1
UNION ALL
SELECT 8, k.key, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM message_keys AS k WHERE k.instance_id = ?1
ORDER BY part, n1, n2
