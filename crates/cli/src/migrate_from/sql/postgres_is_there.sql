-- Whether the schema has a store of duroxide-pg.
SELECT to_regclass('{schema}._duroxide_migrations')::text
