SELECT * FROM c WHERE c.t = 'n'
