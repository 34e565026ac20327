SELECT * FROM c WHERE c.t = 'x'
