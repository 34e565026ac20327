DELETE FROM kv_delta WHERE instance_id = ?1
