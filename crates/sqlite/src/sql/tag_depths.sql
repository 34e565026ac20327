-- For each tag the activities that are due, those that are delayed and those under a live lease, and the time since which the first due
-- one is visible. NULL is the tag of activities without a tag, and comes first.
SELECT tag, sum(is_free AND visible_at <= ?1), sum(is_free AND visible_at > ?1), sum(NOT is_free),
       min(CASE WHEN is_free AND visible_at <= ?1 THEN visible_at END)
FROM (SELECT tag, visible_at, lock_token IS NULL OR locked_until <= ?1 AS is_free FROM worker_queue)
GROUP BY tag ORDER BY tag LIMIT (?2 + 0)
