SELECT instance_id, kind, actor, reason, held_at FROM holds
