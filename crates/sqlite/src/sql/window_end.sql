-- The end of a window of ?2 instances below a position: the position of the next older instance, if there is one.
SELECT i.rowid FROM instances AS i WHERE i.rowid < ?1 ORDER BY i.rowid DESC LIMIT 1 OFFSET (?2 + 0)
