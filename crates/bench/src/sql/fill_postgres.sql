-- Instances with one execution and three events each; some wait for a timer, some failed.
INSERT INTO outlast.instances (instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at)
SELECT 'order-' || lpad(n::text, 8, '0'), 'Order', '1.0.0', 1, 1700000000000 + n, 1700000000000 + n
FROM generate_series({first}, {last}) AS n;
INSERT INTO outlast.executions (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id)
SELECT 'order-' || lpad(n::text, 8, '0'), 1,
       CASE WHEN n % {running} = 0 THEN 'Running' WHEN n % {failed} = 1 THEN 'Failed' ELSE 'Completed' END,
       'an output of some length', 1700000000000 + n, 1700000000000 + n, 1700000000000 + n, 3
FROM generate_series({first}, {last}) AS n;
INSERT INTO outlast.history (instance_id, execution_id, event_id, event_type, event_data)
SELECT 'order-' || lpad(n::text, 8, '0'), 1, e, 'ActivityScheduled', '{"some":"event of ordinary length, as it is stored"}'
FROM generate_series({first}, {last}) AS n, generate_series(1, 3) AS e;
INSERT INTO outlast.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
SELECT 'order-' || lpad(n::text, 8, '0'), '{"some":"timer"}', 99999999999999, 99999999999999, false
FROM generate_series({first}, {last}) AS n WHERE n % {running} = 0;
VACUUM ANALYZE outlast.instances;
VACUUM ANALYZE outlast.executions;
VACUUM ANALYZE outlast.history;
VACUUM ANALYZE outlast.orchestrator_queue;
