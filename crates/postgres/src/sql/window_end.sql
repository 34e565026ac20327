-- The end of a window that begins below a position and holds this many instances: the next older instance, if there is one.
SELECT i.created_as FROM {schema}.instances AS i WHERE i.created_as < $1 ORDER BY i.created_as DESC LIMIT 1 OFFSET $2
