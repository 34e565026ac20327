SELECT * FROM c WHERE c.t = 'o' AND c.at >= @from AND c.at <= @now ORDER BY c.at
