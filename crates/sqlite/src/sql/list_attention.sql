-- list_instances for instances whose current execution runs or failed, by the partial index on executions. All columns are
-- read only for the rows of the page.
SELECT i.rowid, i.instance_id, i.orchestration_name, ifnull(i.orchestration_version, 'unknown'),
       i.current_execution_id, ifnull(e.status, 'Unknown'), e.output, i.created_at,
       max(i.updated_at, ifnull((SELECT max(x.updated_at) FROM executions AS x WHERE x.instance_id = i.instance_id), 0)),
       i.parent_instance_id
FROM (
    SELECT i.rowid AS position FROM executions AS e
    CROSS JOIN instances AS i ON i.instance_id = e.instance_id AND i.current_execution_id = e.execution_id
    WHERE e.status IN ('Running', 'Failed') AND e.status = ?2
      AND i.rowid < ?1 AND i.rowid > ?9
      AND (?3 IS NULL OR i.orchestration_name = ?3)
      AND (?4 IS NULL OR substr(i.instance_id, 1, length(?4)) = ?4)
      AND (?5 IS NULL OR i.parent_instance_id = ?5)
      AND (?6 IS NULL OR i.created_at >= ?6)
      AND (?7 IS NULL OR i.created_at < ?7)
    ORDER BY i.rowid DESC LIMIT (?8 + 0)
) AS p
CROSS JOIN instances AS i ON i.rowid = p.position
LEFT JOIN executions AS e ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
ORDER BY p.position DESC
