SELECT work_item FROM message_texts WHERE message_id = ?1
