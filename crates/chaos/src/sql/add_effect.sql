INSERT INTO effects (key, job, label, number) VALUES (?1, ?2, ?3, ?4)
