SELECT * FROM c WHERE c.t = 'z' AND c.dead.n < @before ORDER BY c.dead.n DESC
