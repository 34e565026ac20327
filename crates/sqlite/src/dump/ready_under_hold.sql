-- Messages of held instances that a fetch finds or a lease covers.
SELECT q.instance_id FROM orchestrator_queue AS q JOIN holds AS h ON h.instance_id = q.instance_id
WHERE q.ready <> 0 OR q.lock_token IS NOT NULL
