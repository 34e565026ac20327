DELETE FROM paused_orchestrations WHERE orchestration = ?1
