-- Backends beside this one still have figures to report.
SELECT numbackends - 1, deadlocks, xact_rollback, xact_commit
FROM pg_stat_database
WHERE datname = current_database()
