SELECT * FROM c WHERE c.t = @type AND c.o >= @after ORDER BY c.o
