SELECT node_id, report, seen_at, expires_at FROM nodes WHERE node_id > ?1 ORDER BY node_id LIMIT (?2 + 0)
