SELECT i.rowid, i.instance_id FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.rowid < ?1 AND (?2 IS NULL OR e.status = ?2)
ORDER BY i.rowid DESC LIMIT (?3 + 0)
