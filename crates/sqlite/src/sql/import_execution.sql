INSERT INTO executions (instance_id, execution_id, status, output, started_at, completed_at, updated_at, last_event_id,
                        terminal_event_id, duroxide_version_major, duroxide_version_minor, duroxide_version_patch,
                        duroxide_version_pre)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ifnull(?6, ?5), ?7, ?8, ?9, ?10, ?11, ?12)
