SELECT * FROM c WHERE c.t = 'i' AND c.ct < @before ORDER BY c.ct DESC
