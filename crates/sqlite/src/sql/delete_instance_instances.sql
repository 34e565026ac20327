DELETE FROM instances WHERE instance_id = ?1
