-- Counts up to the bound.
SELECT count(*) FROM (SELECT 1 FROM orchestrator_queue WHERE instance_id = ?1 LIMIT (?2 + 0))
