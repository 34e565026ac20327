INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id,
                       custom_status, custom_status_version, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
