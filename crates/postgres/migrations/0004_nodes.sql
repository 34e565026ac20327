-- The newest report of each node. A report expires at expires_at, and is swept after kept_until. No column that a beat changes is
-- indexed, and pages have room, so that a beat is a HOT update.
CREATE TABLE {schema}.nodes (
    node_id    text COLLATE "C" PRIMARY KEY,
    report     jsonb  NOT NULL,
    seen_at    bigint NOT NULL,
    expires_at bigint NOT NULL,
    kept_until bigint NOT NULL
) WITH (fillfactor = 50);
