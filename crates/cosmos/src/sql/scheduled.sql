SELECT * FROM c WHERE c.t = 'a' AND c.x = @execution AND ARRAY_CONTAINS(@activities, c.e)
