-- The server, and the rights of the role on the tables of the schema. The name of a table of the store has no blanks.
SELECT current_setting('server_version_num')::bigint AS version, pg_is_in_recovery() AS is_standby,
       current_setting('fsync')::boolean AS fsync, current_setting('full_page_writes')::boolean AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
       current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint AS max_connections,
       coalesce(string_agg(t.name, ' ' ORDER BY t.name) FILTER (WHERE NOT t.is_writable), '') AS read_only,
       count(*) FILTER (WHERE t.is_writable) AS writable
FROM (
    SELECT c.relname::text AS name,
           has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
               AS is_writable
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'SELECT')
) AS t
