-- At most as many as the bound: the question is whether there is room.
SELECT count(*) FROM (SELECT 1 FROM orchestrator_queue WHERE instance_id = ?1 LIMIT (?2 + 0))
