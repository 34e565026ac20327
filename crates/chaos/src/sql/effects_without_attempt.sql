SELECT count(*) FROM effects AS e WHERE NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.key = e.key)
