-- Ids without an instance for which messages wait. The statement reads an index of the queue.
SELECT DISTINCT q.instance_id FROM orchestrator_queue AS q
WHERE q.instance_id > ?1 AND NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = q.instance_id)
ORDER BY q.instance_id LIMIT (?2 + 0)
