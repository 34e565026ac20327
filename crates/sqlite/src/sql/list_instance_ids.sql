-- One window of instances, newest first, by the order of creation; a NULL status does not filter.
SELECT i.instance_id FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.rowid < ?1 AND i.rowid > ?2 AND (?3 IS NULL OR e.status = ?3)
ORDER BY i.rowid DESC
