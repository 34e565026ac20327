SELECT * FROM c WHERE c.t = 'x' AND c.x = @execution
