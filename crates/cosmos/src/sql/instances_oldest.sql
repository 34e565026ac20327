SELECT * FROM c WHERE c.t = 'i' AND c.ct > @after ORDER BY c.ct
