-- The dead letter, its message and its record of the audit change together.
WITH gone AS (DELETE FROM {schema}.dead_letters AS d WHERE d.id = $1 RETURNING d.work_item),
message AS (
    INSERT INTO {schema}.orchestrator_queue (instance_id, work_item, visible_at, available_at, begins)
    SELECT $8, g.work_item, t.at, t.at, $10
    FROM gone AS g CROSS JOIN (SELECT greatest({schema}.now_ms(), $9) AS at OFFSET 0) AS t
)
INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
SELECT {schema}.now_ms(), $2, $3, $4, $5, $6, $7 FROM gone RETURNING true
