-- Creates the execution as running, then applies what the turn says. A new execution inherits unmerged key-value
-- changes, which only an execution that was never ended leaves behind.
INSERT INTO executions (instance_id, execution_id, status, output, started_at, completed_at, last_event_id,
                        terminal_event_id, kv_dirty)
VALUES (?1, ?2, ifnull(?3, 'Running'), ?4, ?5, ?6, ?7, ?8,
        ?9 OR EXISTS (SELECT 1 FROM kv_delta WHERE kv_delta.instance_id = ?1))
ON CONFLICT (instance_id, execution_id) DO UPDATE
SET status = iif(?3 IS NULL, status, excluded.status),
    output = iif(?3 IS NULL, output, excluded.output),
    completed_at = iif(?3 IS NULL, completed_at, excluded.completed_at),
    last_event_id = max(last_event_id, excluded.last_event_id),
    terminal_event_id = ifnull(terminal_event_id, excluded.terminal_event_id),
    kv_dirty = kv_dirty OR ?9
RETURNING kv_dirty
