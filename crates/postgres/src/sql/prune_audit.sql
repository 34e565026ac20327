-- Deletes the records from before $1 among the oldest $2 records. The newest record stays.
WITH gone AS (
    DELETE FROM {schema}.audit AS a
    WHERE a.id = ANY (ARRAY(SELECT id FROM {schema}.audit ORDER BY id LIMIT $2))
        AND a.at < $1 AND a.id < (SELECT max(id) FROM {schema}.audit)
    RETURNING 1)
SELECT count(*) FROM gone
