SELECT orchestration_name, ifnull(orchestration_version, 'unknown') FROM instances WHERE instance_id = ?1
