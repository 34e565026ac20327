SELECT count(*) FROM effects WHERE job = ?1 AND label = ?2
