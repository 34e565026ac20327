-- Where a window ends that begins below a position and holds this many instances: at the next older one, if there is one.
SELECT i.rowid FROM instances AS i WHERE i.rowid < ?1 ORDER BY i.rowid DESC LIMIT 1 OFFSET (?2 + 0)
