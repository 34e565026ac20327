SELECT version, usable_from, checksum FROM {schema}.outlast_migrations ORDER BY version
