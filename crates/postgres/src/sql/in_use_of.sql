-- One of these instances that is held, or for which a message other than a timer, or an activity, waits.
SELECT h.instance_id FROM {schema}.holds AS h WHERE h.instance_id = ANY ($1)
UNION ALL
SELECT q.instance_id FROM {schema}.orchestrator_queue AS q
WHERE q.instance_id = ANY ($1) AND left(q.work_item, 13) <> '{"TimerFired"'
UNION ALL
SELECT w.instance_id FROM {schema}.worker_queue AS w WHERE w.instance_id = ANY ($1)
LIMIT 1
