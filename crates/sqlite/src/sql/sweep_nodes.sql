DELETE FROM nodes WHERE node_id IN (SELECT n.node_id FROM nodes AS n WHERE n.kept_until <= ?1 LIMIT (?2 + 0))
