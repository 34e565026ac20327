SELECT parent_instance_id FROM instances WHERE instance_id = ?1
