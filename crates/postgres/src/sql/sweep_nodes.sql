-- A report that its node renews at the same time is skipped.
DELETE FROM {schema}.nodes WHERE node_id IN (
    SELECT n.node_id FROM {schema}.nodes AS n WHERE n.kept_until <= {schema}.now_ms() LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING true
