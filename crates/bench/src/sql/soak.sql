SELECT pg_database_size(current_database()),
       (SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()),
       (SELECT (checkpoints_timed + checkpoints_req)::bigint FROM pg_stat_bgwriter),
       (SELECT coalesce(sum(autovacuum_count), 0)::bigint FROM pg_stat_user_tables)
