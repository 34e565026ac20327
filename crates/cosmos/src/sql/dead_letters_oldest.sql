SELECT * FROM c WHERE c.t = 'z' ORDER BY c.dead.n
