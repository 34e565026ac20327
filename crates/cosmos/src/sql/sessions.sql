SELECT * FROM c WHERE c.t = 's'
