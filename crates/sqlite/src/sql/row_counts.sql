SELECT 'audit', count(*) FROM audit
UNION ALL SELECT 'dead_letters', count(*) FROM dead_letters
UNION ALL SELECT 'executions', count(*) FROM executions
UNION ALL SELECT 'history', count(*) FROM history
UNION ALL SELECT 'holds', count(*) FROM holds
UNION ALL SELECT 'instance_locks', count(*) FROM instance_locks
UNION ALL SELECT 'instances', count(*) FROM instances
UNION ALL SELECT 'kv_delta', count(*) FROM kv_delta
UNION ALL SELECT 'kv_store', count(*) FROM kv_store
UNION ALL SELECT 'message_keys', count(*) FROM message_keys
UNION ALL SELECT 'message_texts', count(*) FROM message_texts
UNION ALL SELECT 'nodes', count(*) FROM nodes
UNION ALL SELECT 'orchestrator_queue', count(*) FROM orchestrator_queue
UNION ALL SELECT 'paused_orchestrations', count(*) FROM paused_orchestrations
UNION ALL SELECT 'sessions', count(*) FROM sessions
UNION ALL SELECT 'worker_queue', count(*) FROM worker_queue
