DELETE FROM holds WHERE instance_id = ?1
