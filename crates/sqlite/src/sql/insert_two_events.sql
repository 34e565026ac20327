-- OR FAIL: the caller rolls back a call that fails, so SQLite need not copy every page for a rollback of the statement.
INSERT OR FAIL INTO history (instance_id, execution_id, event_id, event_type, event_data)
VALUES (?1, ?2, ?3, ?4, ?5), (?1, ?2, ?6, ?7, ?8)
