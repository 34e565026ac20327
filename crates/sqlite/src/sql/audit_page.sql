SELECT id, at, actor, action, target, reason, request, result FROM audit
WHERE id < ?1 ORDER BY id DESC LIMIT (?2 + 0)
