SELECT * FROM c WHERE c.t = 'a' ORDER BY c.o
