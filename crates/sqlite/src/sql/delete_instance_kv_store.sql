DELETE FROM kv_store WHERE instance_id = ?1
