-- Whether an instance is held, or a message other than a timer, or an activity, waits for it. A timer is never stored outside of
-- its row.
SELECT EXISTS (SELECT 1 FROM holds WHERE instance_id = ?1)
    OR EXISTS (SELECT 1 FROM orchestrator_queue WHERE instance_id = ?1 AND substr(work_item, 1, 13) <> '{"TimerFired"')
    OR EXISTS (SELECT 1 FROM worker_queue WHERE instance_id = ?1)
