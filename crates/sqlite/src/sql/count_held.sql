SELECT (SELECT count(*) FROM holds),
       (SELECT count(*) FROM holds AS h CROSS JOIN orchestrator_queue AS q ON q.instance_id = h.instance_id)
