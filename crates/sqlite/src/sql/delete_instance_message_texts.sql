DELETE FROM message_texts WHERE message_id IN (
    SELECT id FROM orchestrator_queue WHERE instance_id = ?1 AND external_bytes IS NOT NULL)
