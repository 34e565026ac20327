DELETE FROM message_keys WHERE instance_id = ?1
