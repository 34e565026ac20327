CREATE TABLE IF NOT EXISTS {schema}.outlast_migrations (
    version     integer NOT NULL PRIMARY KEY,
    name        text    NOT NULL,
    checksum    text    NOT NULL,
    usable_from integer NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
