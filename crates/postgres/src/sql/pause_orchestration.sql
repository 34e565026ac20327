INSERT INTO {schema}.paused_orchestrations (orchestration, actor, reason, paused_at)
VALUES ($1, $2, $3, {schema}.now_ms()) ON CONFLICT (orchestration) DO NOTHING RETURNING true
