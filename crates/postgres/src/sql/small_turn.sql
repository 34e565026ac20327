-- The size of a history, the keys with which a replay begins, and the events if they are few and small. Otherwise no text is
-- read.
SELECT s.events, s.bytes, k.keys, k.vals, k.times,
       CASE WHEN s.events <= $3 AND s.bytes <= $4 THEN ARRAY(
           SELECT h.event_data FROM {schema}.history AS h
           WHERE h.instance_id = $1 AND h.execution_id = $2 ORDER BY h.event_id) END AS texts
FROM (SELECT count(*) AS events, coalesce(sum(octet_length(event_data)), 0)::bigint AS bytes
      FROM {schema}.history WHERE instance_id = $1 AND execution_id = $2) AS s
CROSS JOIN (SELECT coalesce(array_agg(key), '{}') AS keys, coalesce(array_agg(value), '{}') AS vals,
                   coalesce(array_agg(last_updated_at_ms), '{}') AS times
            FROM {schema}.kv_store WHERE instance_id = $1) AS k
