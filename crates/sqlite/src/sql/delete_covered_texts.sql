DELETE FROM message_texts WHERE message_id IN (
    SELECT id FROM orchestrator_queue
    WHERE instance_id = ?1 AND available_at <= ?3 AND lock_token = ?2 AND external_bytes IS NOT NULL)
