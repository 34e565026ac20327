SELECT * FROM c WHERE c.t = 'b'
