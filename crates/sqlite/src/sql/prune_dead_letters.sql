-- Deletes the rows from before ?1 among the ?2 dead letters with the lowest numbers.
DELETE FROM dead_letters
WHERE id IN (SELECT id FROM dead_letters WHERE id > 0 ORDER BY id LIMIT (?2 + 0)) AND dead_at < ?1
