TRUNCATE {schema}.instances, {schema}.executions, {schema}.history, {schema}.orchestrator_queue, {schema}.instance_locks,
    {schema}.worker_queue, {schema}.sessions, {schema}.kv_store, {schema}.kv_delta, {schema}.dead_letters, {schema}.holds,
    {schema}.paused_orchestrations, {schema}.audit, {schema}.listeners, {schema}.owners
    RESTART IDENTITY
