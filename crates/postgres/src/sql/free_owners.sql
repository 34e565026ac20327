-- The owners with a free lock among the next $2 owners, in the order of their numbers, and the server process that executed the
-- query.
SELECT pg_backend_pid() AS server_process, coalesce(array_agg(o.owner), '{}') AS free FROM (
    SELECT w.owner FROM {schema}.owners AS w WHERE w.owner <> $1 ORDER BY w.owner < $1, w.owner LIMIT $2
) AS o
WHERE pg_try_advisory_xact_lock_shared(o.owner)
