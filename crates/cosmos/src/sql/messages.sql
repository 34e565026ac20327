SELECT * FROM c WHERE c.t = 'm' ORDER BY c.o
