-- The tags of free activities, without NULL. The recursion seeks from one tag to the next in the index.
WITH RECURSIVE tags (tag) AS (
    SELECT (SELECT tag FROM worker_queue WHERE lock_token IS NULL AND tag > '' ORDER BY tag LIMIT 1)
    UNION ALL
    SELECT (SELECT w.tag FROM worker_queue AS w WHERE w.lock_token IS NULL AND w.tag > tags.tag ORDER BY w.tag LIMIT 1)
    FROM tags WHERE tags.tag IS NOT NULL
)
SELECT tag FROM tags WHERE tag IS NOT NULL
UNION ALL
SELECT '' WHERE EXISTS (SELECT 1 FROM worker_queue WHERE lock_token IS NULL AND tag = '')
