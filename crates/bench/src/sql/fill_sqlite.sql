-- Instances with one execution and three events each; some wait for a timer, some failed.
CREATE TEMP TABLE n AS
WITH RECURSIVE n (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n WHERE n < {last}) SELECT n FROM n;
INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id, created_at, updated_at)
SELECT printf('order-%08d', n), 'Order', '1.0.0', 1, 1700000000000 + n, 1700000000000 + n FROM n;
INSERT INTO executions (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id)
SELECT printf('order-%08d', n), 1,
       CASE WHEN n % {running} = 0 THEN 'Running' WHEN n % {failed} = 1 THEN 'Failed' ELSE 'Completed' END,
       'an output of some length', 1700000000000 + n, 1700000000000 + n, 1700000000000 + n, 3 FROM n;
INSERT INTO history (instance_id, execution_id, event_id, event_type, event_data)
SELECT printf('order-%08d', n), 1, e.e, 'ActivityScheduled', '{"some":"event of ordinary length, as it is stored"}'
FROM n, (SELECT 1 AS e UNION ALL SELECT 2 UNION ALL SELECT 3) AS e;
INSERT INTO orchestrator_queue (instance_id, work_item, visible_at, available_at)
SELECT printf('order-%08d', n), '{"some":"timer"}', 99999999999999, 99999999999999 FROM n WHERE n % {running} = 0;
DROP TABLE n;
