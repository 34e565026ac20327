-- The condition of count_orphans.
DELETE FROM kv_store WHERE NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = kv_store.instance_id)
  AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.instance_id = kv_store.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = kv_store.instance_id)
