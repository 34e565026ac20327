INSERT INTO {schema}.audit (at, actor, action, target, reason, request, result)
VALUES ({schema}.now_ms(), $1, $2, $3, $4, $5, $6) RETURNING true
