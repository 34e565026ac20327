SELECT version, checksum FROM {schema}.outlast_migrations ORDER BY version
