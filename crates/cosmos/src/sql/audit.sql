SELECT * FROM c WHERE c.t = 'u' AND c.o < @before ORDER BY c.o DESC
