-- Terminates one backend that serves a client, but not the backend of this connection.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND datname = current_database()
ORDER BY random() LIMIT 1
