-- The newest report of each node. A report expires at expires_at, and is swept after kept_until.
CREATE TABLE nodes (
    node_id    TEXT    PRIMARY KEY NOT NULL,
    report     TEXT    NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    kept_until INTEGER NOT NULL
);
