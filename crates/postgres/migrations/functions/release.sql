-- Ends the hold of an instance: its messages return to the ready index, and the rest that the hold replaced is there again. Returns
-- whether the instance was held. The row of the lease comes first: it keeps set_aside out.
CREATE FUNCTION {schema}.release_1(p_instance text) RETURNS boolean LANGUAGE plpgsql VOLATILE
{index_lookups_only}
AS $$
DECLARE
    v_rest bigint;
BEGIN
    PERFORM 1 FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance FOR UPDATE;
    DELETE FROM {schema}.holds AS h WHERE h.instance_id = p_instance RETURNING h.rest_until INTO v_rest;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE {schema}.orchestrator_queue AS q SET is_aside = false WHERE q.instance_id = p_instance AND q.is_aside;
    IF v_rest IS NULL THEN
        DELETE FROM {schema}.instance_locks AS l WHERE l.instance_id = p_instance;
    ELSE
        UPDATE {schema}.instance_locks AS l SET locked_until = v_rest, has_aside = false WHERE l.instance_id = p_instance;
    END IF;
    RETURN true;
END $$;
