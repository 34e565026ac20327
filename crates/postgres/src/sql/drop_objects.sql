-- For a schema that other programs may use: drops the objects that the migrations made, and nothing else.
DO $$
DECLARE
    v_one record;
BEGIN
    FOR v_one IN SELECT p.oid::regprocedure AS name FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        WHERE quote_ident(n.nspname) = quote_ident(trim(BOTH '"' FROM '{schema}'))
            AND (p.proname = 'now_ms' OR p.proname ~ '^(is_item|lease_new_instances|touch_sessions|waiting_sessions|keep_places|set_aside|hold|hold_turn|release|release_cancelled|reset|import|commit|commit_alone|fetch_turns|settle_turn|fetch_activities|dead_letter_activities|enqueue_messages|enqueue_activities|enqueue_once|start|renew|abandon|append|outcomes|notify|forward_notification|register_listener|own|holds_lease|end_leases)_[0-9]+$')
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', v_one.name);
    END LOOP;
END $$;
DROP TABLE IF EXISTS {schema}.instances, {schema}.executions, {schema}.history, {schema}.orchestrator_queue,
    {schema}.instance_locks, {schema}.worker_queue, {schema}.sessions, {schema}.kv_store, {schema}.kv_delta,
    {schema}.dead_letters, {schema}.holds, {schema}.paused_orchestrations, {schema}.audit, {schema}.message_keys, {schema}.nodes, {schema}.listeners, {schema}.owners, {schema}.outlast_migrations CASCADE
