SELECT * FROM c WHERE c.t = 'u' AND c.q < @before ORDER BY c.q DESC
