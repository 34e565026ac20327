SELECT * FROM c WHERE c.t = 'd'
