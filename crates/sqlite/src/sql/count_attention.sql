-- Counts up to the bound. SQLite uses the partial index only if the query repeats the condition of the index literally.
SELECT count(*) FROM (
    SELECT 1 FROM executions AS e WHERE e.status IN ('Running', 'Failed') AND e.status = ?1 LIMIT (?2 + 0))
