-- The dead letter, its activity and its record of the audit change together.
WITH gone AS (DELETE FROM {schema}.dead_letters AS d WHERE d.id = $1 RETURNING d.work_item),
activity AS (
    INSERT INTO {schema}.worker_queue (work_item, visible_at, instance_id, execution_id, activity_id, session_id, tag)
    SELECT g.work_item, {schema}.now_ms(), $8, $9, $10, $11, $12 FROM gone AS g
)
INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
SELECT {schema}.now_ms(), $2, $3, $4, $5, $6, $7 FROM gone RETURNING true
