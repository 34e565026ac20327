-- Creates the execution with the status Running, then applies the metadata of the turn. ?9: the execution may be new, and a tool
-- may have appended events to it before. ?10: the pinned version, if there is one.
INSERT INTO executions (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id,
                        terminal_event_id, duroxide_version_major, duroxide_version_minor, duroxide_version_patch,
                        duroxide_version_pre)
VALUES (?1, ?2, ifnull(?3, 'Running'), ?4, ?5, ?6, ?5,
        max(?7, iif(?9, ifnull((SELECT max(event_id) FROM history WHERE instance_id = ?1 AND execution_id = ?2), 0), 0)),
        ?8, ?10, ?11, ?12, ?13)
ON CONFLICT (instance_id, execution_id) DO UPDATE
SET status = iif(?3 IS NULL, status, excluded.status),
    output = iif(?3 IS NULL, output, excluded.output),
    completed_at = iif(?3 IS NULL, completed_at, excluded.completed_at),
    updated_at = excluded.updated_at,
    last_event_id = max(last_event_id, excluded.last_event_id),
    terminal_event_id = ifnull(terminal_event_id, excluded.terminal_event_id),
    duroxide_version_major = ifnull(?10, duroxide_version_major),
    duroxide_version_minor = iif(?10 IS NULL, duroxide_version_minor, ?11),
    duroxide_version_patch = iif(?10 IS NULL, duroxide_version_patch, ?12),
    duroxide_version_pre = iif(?10 IS NULL, duroxide_version_pre, ?13)
