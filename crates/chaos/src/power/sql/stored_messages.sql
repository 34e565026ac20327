SELECT work_item FROM orchestrator_queue ORDER BY id
