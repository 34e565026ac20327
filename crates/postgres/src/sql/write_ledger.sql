INSERT INTO {schema}.outlast_migrations (version, name, checksum, usable_from) VALUES ($1, $2, $3, $4)
