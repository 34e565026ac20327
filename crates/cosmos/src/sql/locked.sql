SELECT * FROM c WHERE c.t = 'i' AND c.at > 0
