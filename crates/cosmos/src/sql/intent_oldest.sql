SELECT c.since FROM c WHERE c.t = 'o' AND c.since <= @until ORDER BY c.since
