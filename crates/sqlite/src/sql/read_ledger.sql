SELECT version, usable_from, checksum FROM outlast_migrations ORDER BY rowid
