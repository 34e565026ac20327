DELETE FROM history WHERE instance_id = ?1
