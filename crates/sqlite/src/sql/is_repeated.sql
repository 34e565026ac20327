SELECT EXISTS (SELECT 1 FROM message_keys WHERE instance_id = ?1 AND key = ?2)
