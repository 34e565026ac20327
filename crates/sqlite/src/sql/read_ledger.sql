SELECT version, checksum FROM outlast_migrations ORDER BY rowid
