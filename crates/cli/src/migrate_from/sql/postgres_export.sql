-- Everything of an instance, in the parts and columns of ExportRow, all as texts.
SELECT a.part::text, a.t1, a.t2, a.t3, a.t4, a.n1::text, a.n2::text, a.n3::text, a.n4::text FROM (
    SELECT 0 AS part, i.orchestration_name AS t1, i.orchestration_version AS t2, i.parent_instance_id AS t3, i.custom_status AS t4,
           i.current_execution_id AS n1, i.custom_status_version::bigint AS n2,
           (extract(epoch FROM i.created_at) * 1000)::bigint AS n3, (extract(epoch FROM i.updated_at) * 1000)::bigint AS n4
    FROM {schema}.instances AS i WHERE i.instance_id = $1
    UNION ALL
    SELECT 1, e.status, e.output,
           e.duroxide_version_major || '.' || e.duroxide_version_minor || '.' || e.duroxide_version_patch, NULL, e.execution_id,
           (extract(epoch FROM e.started_at) * 1000)::bigint, (extract(epoch FROM e.completed_at) * 1000)::bigint, NULL
    FROM {schema}.executions AS e WHERE e.instance_id = $1
    UNION ALL
    SELECT 2, h.event_data, NULL, NULL, NULL, h.execution_id, h.event_id, NULL, NULL
    FROM {schema}.history AS h WHERE h.instance_id = $1
    UNION ALL
    SELECT 3, s.key, s.value, NULL, NULL, s.last_updated_at_ms, NULL, NULL, NULL FROM {schema}.kv_store AS s WHERE s.instance_id = $1
    UNION ALL
    SELECT 4, d.key, d.value, NULL, NULL, d.last_updated_at_ms, NULL, NULL, NULL FROM {schema}.kv_delta AS d WHERE d.instance_id = $1
    UNION ALL
    SELECT 5, q.work_item, NULL, NULL, NULL, (extract(epoch FROM q.visible_at) * 1000)::bigint, q.id,
           (extract(epoch FROM q.visible_at) * 1000)::bigint, q.attempt_count
    FROM {schema}.orchestrator_queue AS q WHERE q.instance_id = $1
    UNION ALL
    SELECT 6, w.work_item, NULL, NULL, NULL, w.id, (extract(epoch FROM w.visible_at) * 1000)::bigint, w.attempt_count, 0
    FROM {schema}.worker_queue AS w WHERE w.instance_id = $1
) AS a
ORDER BY a.part, a.n1, a.n2
