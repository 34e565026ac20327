INSERT INTO paused_orchestrations (orchestration, actor, reason, paused_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (orchestration) DO NOTHING
