SELECT instance_id, kind, actor, reason, held_at FROM holds
WHERE instance_id > ?1 ORDER BY instance_id LIMIT (?2 + 0)
