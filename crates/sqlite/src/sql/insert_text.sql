-- REPLACE: an existing row belongs to no message.
INSERT OR REPLACE INTO message_texts (message_id, work_item) VALUES (?1, ?2)
