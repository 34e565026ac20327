-- Instances of a window, newest first, by the order of creation; a NULL parameter does not filter.
SELECT i.rowid, i.instance_id, i.orchestration_name, ifnull(i.orchestration_version, 'unknown'),
       i.current_execution_id, ifnull(e.status, 'Unknown'), e.output, i.created_at,
       max(i.updated_at, ifnull((SELECT max(x.updated_at) FROM executions AS x WHERE x.instance_id = i.instance_id), 0)),
       i.parent_instance_id
FROM instances AS i
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
WHERE i.rowid < ?1 AND i.rowid > ?9
  AND (?2 IS NULL OR e.status = ?2)
  AND (?3 IS NULL OR i.orchestration_name = ?3)
  AND (?4 IS NULL OR substr(i.instance_id, 1, length(?4)) = ?4)
  AND (?5 IS NULL OR i.parent_instance_id = ?5)
  AND (?6 IS NULL OR i.created_at >= ?6)
  AND (?7 IS NULL OR i.created_at < ?7)
ORDER BY i.rowid DESC LIMIT (?8 + 0)
