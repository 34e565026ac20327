SELECT count(*), ifnull(sum(octet_length(event_data)), 0) FROM history WHERE instance_id = ?1 AND execution_id = ?2
