UPDATE outlast_migrations SET applied_at = applied_at
