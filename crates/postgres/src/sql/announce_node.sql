INSERT INTO {schema}.nodes (node_id, report, seen_at, expires_at, kept_until)
SELECT $1, $2::jsonb, clock.now, clock.now + $3, clock.now + $4 FROM (SELECT {schema}.now_ms() AS now) AS clock
ON CONFLICT (node_id) DO UPDATE
SET report = excluded.report, seen_at = excluded.seen_at, expires_at = excluded.expires_at, kept_until = excluded.kept_until
RETURNING true
