UPDATE sessions SET locked_until = 0 WHERE locked_until > 0 AND owner = ?1
