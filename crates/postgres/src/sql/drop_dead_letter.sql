-- The dead letter and its record of the audit change together.
WITH gone AS (DELETE FROM {schema}.dead_letters AS d WHERE d.id = $1 RETURNING d.id)
INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
SELECT {schema}.now_ms(), $2, $3, $4, $5, $6, $7 FROM gone RETURNING true
