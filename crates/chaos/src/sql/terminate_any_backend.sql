-- One of those that serve clients, but not the one that asks.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()
ORDER BY random() LIMIT 1
