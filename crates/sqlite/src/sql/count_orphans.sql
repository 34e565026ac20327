-- Rows that no call reaches: large texts without their message, and rows of instances of which no other table has a row.
SELECT 'message_texts', count(*) FROM message_texts AS t
WHERE NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.id = t.message_id)
UNION ALL
SELECT 'kv_store', count(*) FROM kv_store AS k
WHERE NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = k.instance_id)
  AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.instance_id = k.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = k.instance_id)
UNION ALL
SELECT 'kv_delta', count(*) FROM kv_delta AS k
WHERE NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = k.instance_id)
  AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.instance_id = k.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = k.instance_id)
UNION ALL
SELECT 'worker_queue', count(*) FROM worker_queue AS w
WHERE w.lock_token IS NULL
  AND NOT EXISTS (SELECT 1 FROM instances AS i WHERE i.instance_id = w.instance_id)
  AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.instance_id = w.instance_id)
  AND NOT EXISTS (SELECT 1 FROM orchestrator_queue AS m WHERE m.instance_id = w.instance_id)
