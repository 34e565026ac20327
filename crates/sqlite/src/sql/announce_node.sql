INSERT INTO nodes (node_id, report, seen_at, expires_at, kept_until) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (node_id) DO UPDATE
SET report = excluded.report, seen_at = excluded.seen_at, expires_at = excluded.expires_at, kept_until = excluded.kept_until
