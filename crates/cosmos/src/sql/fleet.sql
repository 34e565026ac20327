SELECT * FROM c WHERE c.t = 'r' OR c.t = 'l'
