SELECT
    (SELECT count(*) FROM dead_letters),
    (SELECT count(*) FROM instances WHERE instance_id NOT IN (SELECT instance_id FROM executions))
