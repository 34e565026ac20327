SELECT number FROM effects WHERE key = ?1
