DELETE FROM message_texts WHERE NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.id = message_texts.message_id)
