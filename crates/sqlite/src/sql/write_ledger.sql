INSERT INTO outlast_migrations (version, name, checksum, usable_from, applied_at) VALUES (?1, ?2, ?3, ?4, ?5)
