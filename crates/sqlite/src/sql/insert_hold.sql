INSERT OR REPLACE INTO holds (instance_id, kind, actor, reason, held_at) VALUES (?1, ?2, ?3, ?4, ?5)
