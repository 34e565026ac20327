SELECT orchestration, actor, reason, paused_at FROM paused_orchestrations ORDER BY orchestration
