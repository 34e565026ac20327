SELECT pg_advisory_xact_lock({seed} + 2)
