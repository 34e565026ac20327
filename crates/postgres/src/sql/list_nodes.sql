SELECT n.node_id, n.report::text AS report, n.seen_at, n.expires_at, {schema}.now_ms() AS now FROM {schema}.nodes AS n
WHERE n.node_id > $1 ORDER BY n.node_id LIMIT $2
