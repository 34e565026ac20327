INSERT INTO instances (instance_id, orchestration_name, orchestration_version, current_execution_id,
                       parent_instance_id, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
ON CONFLICT (instance_id) DO UPDATE
SET orchestration_name = excluded.orchestration_name, orchestration_version = excluded.orchestration_version,
    current_execution_id = max(current_execution_id, excluded.current_execution_id), updated_at = excluded.updated_at
