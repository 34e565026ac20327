-- The messages of an instance that may be its start.
SELECT CASE WHEN external_bytes IS NULL THEN work_item
            ELSE (SELECT t.work_item FROM message_texts AS t WHERE t.message_id = id) END,
       visible_at
FROM orchestrator_queue WHERE instance_id = ?1 AND begins <> 0
