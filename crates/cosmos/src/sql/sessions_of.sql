SELECT * FROM c WHERE c.t = 's' AND ARRAY_CONTAINS(@owners, c.own)
