CREATE TABLE IF NOT EXISTS outlast_migrations (
    version     INTEGER NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    checksum    TEXT    NOT NULL,
    usable_from INTEGER NOT NULL,
    applied_at  INTEGER NOT NULL
)
