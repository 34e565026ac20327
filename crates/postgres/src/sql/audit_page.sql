SELECT id, at, actor, action, target, reason, request, result FROM {schema}.audit
WHERE id < $1 ORDER BY id DESC LIMIT $2
