INSERT INTO audit (at, actor, action, target, reason, request, result) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
