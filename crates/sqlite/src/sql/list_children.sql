SELECT instance_id FROM instances WHERE parent_instance_id = ?1 ORDER BY rowid
