-- Appends events outside of a turn.
CREATE FUNCTION {schema}.append_1(p_instance text, p_execution bigint, p_event bigint[], p_type text[], p_data text[])
RETURNS void LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
    SELECT p_instance, p_execution, h.event_id, h.event_type, h.event_data
    FROM unnest(p_event, p_type, p_data) AS h (event_id, event_type, event_data);
    UPDATE {schema}.executions AS e
    SET last_event_id = greatest(e.last_event_id, (SELECT max(h.event_id) FROM unnest(p_event) AS h (event_id)))
    WHERE e.instance_id = p_instance AND e.execution_id = p_execution;
END $$;
