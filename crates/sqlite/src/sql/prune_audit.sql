-- Deletes the records from before ?1 among the oldest ?2 records. The newest record stays, because SQLite gives its id again
-- otherwise.
DELETE FROM audit
WHERE id IN (SELECT id FROM audit WHERE id > 0 ORDER BY id LIMIT (?2 + 0)) AND at < ?1 AND id < (SELECT id FROM audit WHERE id > 0 ORDER BY id DESC LIMIT 1)
