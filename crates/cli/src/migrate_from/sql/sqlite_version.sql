-- The newest migration of a store of duroxide; a database of another program has no such table.
SELECT CAST(max(version) AS TEXT) FROM _sqlx_migrations WHERE success
