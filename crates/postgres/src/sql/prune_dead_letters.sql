-- Deletes the rows from before $1 among the $2 dead letters with the lowest numbers.
WITH gone AS (
    DELETE FROM {schema}.dead_letters AS d
    WHERE d.id = ANY (ARRAY(SELECT id FROM {schema}.dead_letters ORDER BY id LIMIT $2)) AND d.dead_at < $1
    RETURNING 1)
SELECT count(*) FROM gone
