SELECT * FROM c WHERE c.t = 'h' AND c.x = @execution
