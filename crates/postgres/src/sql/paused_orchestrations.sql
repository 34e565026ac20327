SELECT orchestration, actor, reason, paused_at FROM {schema}.paused_orchestrations ORDER BY orchestration
