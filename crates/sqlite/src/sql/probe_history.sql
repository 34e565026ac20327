-- Events of the newest execution, whether or not the instance has a row.
SELECT event_data FROM history
WHERE instance_id = ?1
  AND execution_id = ifnull((SELECT max(execution_id) FROM executions WHERE instance_id = ?1), 1)
ORDER BY event_id
