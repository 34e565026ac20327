SELECT TOP 1 c.id FROM c WHERE c.t = 'a' AND c.sid = @session
