SELECT * FROM instance_locks
