SELECT * FROM c WHERE c.t = 'k'
