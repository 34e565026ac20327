INSERT INTO attempts (key, worker) VALUES (?1, ?2)
