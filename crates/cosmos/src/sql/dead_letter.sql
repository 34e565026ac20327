SELECT * FROM c WHERE c.t = 'z' AND c.dead.n = @number
