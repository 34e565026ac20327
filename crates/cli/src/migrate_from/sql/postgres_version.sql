-- The newest migration of a store of duroxide-pg, and the number of its migrations.
SELECT max(version)::text, count(*)::text FROM {schema}._duroxide_migrations
