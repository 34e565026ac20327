SELECT * FROM c WHERE c.t = 'i' OR c.t = 'g' OR (c.t = 'm' AND c.at <= @until)
