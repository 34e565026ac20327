-- At most as many as the bound: the question is whether they are few. SQLite takes the partial index only where the query
-- repeats its condition word by word.
SELECT count(*) FROM (
    SELECT 1 FROM executions AS e WHERE e.status IN ('Running', 'Failed') AND e.status = ?1 LIMIT (?2 + 0))
