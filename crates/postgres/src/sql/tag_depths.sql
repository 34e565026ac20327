-- For each tag the activities that are due, those that are delayed and those under a live lease, and the longest wait of a due one.
-- NULL is the tag of activities without a tag, and comes first.
WITH clock AS MATERIALIZED (SELECT {schema}.now_ms() AS now)
SELECT a.tag, count(*) FILTER (WHERE a.is_free AND a.visible_at <= a.now) AS due,
       count(*) FILTER (WHERE a.is_free AND a.visible_at > a.now) AS delayed, count(*) FILTER (WHERE NOT a.is_free) AS leased,
       max(a.now - a.visible_at) FILTER (WHERE a.is_free AND a.visible_at <= a.now) AS oldest_ms
FROM (
    SELECT w.tag, w.visible_at, c.now, (w.lock_token IS NULL OR w.locked_until <= c.now) AS is_free
    FROM {schema}.worker_queue AS w CROSS JOIN clock AS c
) AS a
GROUP BY a.tag ORDER BY a.tag NULLS FIRST LIMIT $1
