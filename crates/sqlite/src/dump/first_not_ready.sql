-- Instances that no fetch finds: neither a lease, which ends, nor a hold, nor a ready first message. x'' is the token of a delay.
SELECT q.instance_id FROM orchestrator_queue AS q
WHERE q.ready <> 1
  AND NOT EXISTS (SELECT 1 FROM instance_locks AS l WHERE l.instance_id = q.instance_id AND l.lock_token <> x'')
  AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.instance_id = q.instance_id)
  AND NOT EXISTS (
      SELECT 1 FROM orchestrator_queue AS f
      WHERE f.instance_id = q.instance_id AND (f.visible_at, f.id) < (q.visible_at, q.id))
