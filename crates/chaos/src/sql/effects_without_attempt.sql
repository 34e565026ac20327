SELECT count(*) FROM (SELECT key FROM effects EXCEPT SELECT key FROM attempts)
