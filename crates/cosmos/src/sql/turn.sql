SELECT * FROM c WHERE c.t = 'i' OR (c.t = 'm' AND c.at <= @now) ORDER BY c.o
