-- OR FAIL: the caller undoes a call that fails half-way, so SQLite need not keep a copy of every page for that.
INSERT OR FAIL INTO history (instance_id, execution_id, event_id, event_type, event_data)
VALUES (?1, ?2, ?3, ?4, ?5), (?1, ?2, ?6, ?7, ?8), (?1, ?2, ?9, ?10, ?11), (?1, ?2, ?12, ?13, ?14),
       (?1, ?2, ?15, ?16, ?17), (?1, ?2, ?18, ?19, ?20), (?1, ?2, ?21, ?22, ?23), (?1, ?2, ?24, ?25, ?26)
