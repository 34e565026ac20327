SELECT event_data FROM history ORDER BY instance_id, execution_id, event_id
