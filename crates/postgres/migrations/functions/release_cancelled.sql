-- A cancellation releases the held instance that it is for: the instance must be able to end. A trigger, because messages are stored by
-- enqueue_messages, start and commit. Its condition costs the other messages a comparison of their first characters.
CREATE FUNCTION {schema}.release_cancelled_1() RETURNS trigger LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM {schema}.release_1(NEW.instance_id);
    RETURN NULL;
END $$;
CREATE TRIGGER orchestrator_queue_cancels AFTER INSERT ON {schema}.orchestrator_queue
FOR EACH ROW WHEN (starts_with(NEW.work_item, '{"CancelInstance"')) EXECUTE FUNCTION {schema}.release_cancelled_1();
