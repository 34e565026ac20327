DELETE FROM message_texts WHERE message_id = ?1
