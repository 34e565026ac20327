-- Limits that the server or the role has set, in milliseconds.
SELECT name, setting::bigint FROM pg_catalog.pg_settings WHERE name = ANY ($1)
