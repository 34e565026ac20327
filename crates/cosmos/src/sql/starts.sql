SELECT * FROM c WHERE c.t = 'm' AND c.o < '2'
