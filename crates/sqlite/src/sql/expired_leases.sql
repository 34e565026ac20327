-- The delay of a held instance makes no message ready when it is over.
SELECT instance_id FROM instance_locks AS l
WHERE locked_until <= ?1 AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = l.instance_id)
