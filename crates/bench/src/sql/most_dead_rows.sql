SELECT coalesce(max(s.n_dead_tup), 0) FROM pg_stat_user_tables AS s WHERE s.schemaname = $1
