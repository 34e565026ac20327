SELECT * FROM c WHERE c.t = 'u' ORDER BY c.o
