UPDATE instances SET current_execution_id = ?2, updated_at = ?3 WHERE instance_id = ?1 AND current_execution_id < ?2
