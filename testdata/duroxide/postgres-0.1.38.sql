-- A store that duroxide-pg 0.1.38 wrote: `peer-stores postgres peer`, then `pg_dump --inserts` of its tables. Functions and indexes are
-- left out, because no reader of the rows needs them.
CREATE SCHEMA peer;
CREATE TABLE peer._duroxide_migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP
);

CREATE TABLE peer.executions (
    instance_id text NOT NULL,
    execution_id bigint NOT NULL,
    status text DEFAULT 'Running'::text NOT NULL,
    output text,
    started_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    duroxide_version_major integer,
    duroxide_version_minor integer,
    duroxide_version_patch integer
);

CREATE TABLE peer.history (
    instance_id text NOT NULL,
    execution_id bigint NOT NULL,
    event_id bigint NOT NULL,
    event_type text NOT NULL,
    event_data text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE peer.instance_locks (
    instance_id text NOT NULL,
    lock_token text NOT NULL,
    locked_until bigint NOT NULL,
    locked_at bigint NOT NULL
);

CREATE TABLE peer.instances (
    instance_id text NOT NULL,
    orchestration_name text NOT NULL,
    orchestration_version text,
    current_execution_id bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    parent_instance_id text,
    custom_status text,
    custom_status_version integer DEFAULT 0 NOT NULL
);

CREATE TABLE peer.kv_delta (
    instance_id text NOT NULL,
    key text NOT NULL,
    value text,
    last_updated_at_ms bigint NOT NULL
);

CREATE TABLE peer.kv_store (
    instance_id text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    execution_id bigint NOT NULL,
    last_updated_at_ms bigint DEFAULT 0 NOT NULL
);

CREATE TABLE peer.orchestrator_queue (
    id bigint NOT NULL,
    instance_id text NOT NULL,
    work_item text NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    lock_token text,
    locked_until bigint,
    created_at timestamp with time zone NOT NULL,
    attempt_count integer DEFAULT 0 NOT NULL
);

CREATE TABLE peer.sessions (
    session_id text NOT NULL,
    worker_id text NOT NULL,
    locked_until bigint NOT NULL,
    last_activity_at bigint NOT NULL
);

CREATE TABLE peer.worker_queue (
    id bigint NOT NULL,
    work_item text NOT NULL,
    visible_at timestamp with time zone NOT NULL,
    lock_token text,
    locked_until bigint,
    created_at timestamp with time zone NOT NULL,
    attempt_count integer DEFAULT 0 NOT NULL,
    instance_id text,
    execution_id bigint,
    activity_id bigint,
    session_id text,
    tag text
);

INSERT INTO peer._duroxide_migrations VALUES (1, '0001_initial_schema.sql', '2026-11-18 06:29:14.90293+00');
INSERT INTO peer._duroxide_migrations VALUES (2, '0002_create_stored_procedures.sql', '2026-11-18 06:29:15.021806+00');
INSERT INTO peer._duroxide_migrations VALUES (3, '0003_add_attempt_count.sql', '2026-11-18 06:29:15.036955+00');
INSERT INTO peer._duroxide_migrations VALUES (4, '0004_update_stored_procedures_for_attempt_count.sql', '2026-11-18 06:29:15.047194+00');
INSERT INTO peer._duroxide_migrations VALUES (5, '0005_add_visible_at_to_worker_queue.sql', '2026-11-18 06:29:15.060055+00');
INSERT INTO peer._duroxide_migrations VALUES (6, '0006_use_rust_timestamps.sql', '2026-11-18 06:29:15.069994+00');
INSERT INTO peer._duroxide_migrations VALUES (7, '0007_add_execution_state_support.sql', '2026-11-18 06:29:15.08187+00');
INSERT INTO peer._duroxide_migrations VALUES (8, '0008_remove_execution_state.sql', '2026-11-18 06:29:15.089782+00');
INSERT INTO peer._duroxide_migrations VALUES (9, '0009_add_activity_cancellation_support.sql', '2026-11-18 06:29:15.096808+00');
INSERT INTO peer._duroxide_migrations VALUES (10, '0010_add_deletion_and_pruning_support.sql', '2026-11-18 06:29:15.138008+00');
INSERT INTO peer._duroxide_migrations VALUES (11, '0011_fix_cancellation_ordering.sql', '2026-11-18 06:29:15.158173+00');
INSERT INTO peer._duroxide_migrations VALUES (12, '0012_require_timestamps.sql', '2026-11-18 06:29:15.170037+00');
INSERT INTO peer._duroxide_migrations VALUES (13, '0013_add_capability_filtering.sql', '2026-11-18 06:29:15.177812+00');
INSERT INTO peer._duroxide_migrations VALUES (14, '0014_add_session_support.sql', '2026-11-18 06:29:15.185848+00');
INSERT INTO peer._duroxide_migrations VALUES (15, '0015_add_custom_status.sql', '2026-11-18 06:29:15.216494+00');
INSERT INTO peer._duroxide_migrations VALUES (16, '0016_add_activity_tags.sql', '2026-11-18 06:29:15.234027+00');
INSERT INTO peer._duroxide_migrations VALUES (17, '0017_retry_orchestration_fetch_on_contention.sql', '2026-11-18 06:29:15.258099+00');
INSERT INTO peer._duroxide_migrations VALUES (18, '0018_add_kv_store.sql', '2026-11-18 06:29:15.263858+00');
INSERT INTO peer._duroxide_migrations VALUES (19, '0019_add_kv_last_updated.sql', '2026-11-18 06:29:15.290076+00');
INSERT INTO peer._duroxide_migrations VALUES (20, '0020_add_kv_delta.sql', '2026-11-18 06:29:15.302091+00');
INSERT INTO peer._duroxide_migrations VALUES (21, '0021_add_get_instance_stats.sql', '2026-11-18 06:29:15.322007+00');
INSERT INTO peer._duroxide_migrations VALUES (23, '0023_partial_secondary_indexes.sql', '2026-11-18 06:29:15.32568+00');
INSERT INTO peer._duroxide_migrations VALUES (25, '0025_fetch_orchestration_lease_at_claim.sql', '2026-11-18 06:29:15.364556+00');
INSERT INTO peer._duroxide_migrations VALUES (26, '0026_serialize_orchestration_lock_mutations.sql', '2026-11-18 06:29:15.378056+00');
INSERT INTO peer.executions VALUES ('nap-long', 1, 'Running', NULL, '2026-11-18 06:29:17.133+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('waits-1', 1, 'Running', NULL, '2026-11-18 06:29:17.143+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('waits-2', 1, 'Running', NULL, '2026-11-18 06:29:17.163+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('hello-1', 1, 'Completed', 'Hello, Ada!', '2026-11-18 06:29:17.046+00', '2026-11-18 06:29:17.174+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('fails-1', 1, 'Failed', 'it is broken', '2026-11-18 06:29:17.11+00', '2026-11-18 06:29:17.214+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('hello-2', 1, 'Completed', 'Hello, a"b\c🦀
!', '2026-11-18 06:29:17.106+00', '2026-11-18 06:29:17.234+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('work-1', 1, 'Running', NULL, '2026-11-18 06:29:17.247+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('work-tag', 1, 'Running', NULL, '2026-11-18 06:29:17.261+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('work-session', 1, 'Running', NULL, '2026-11-18 06:29:17.273+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('parent-1', 1, 'Running', NULL, '2026-11-18 06:29:17.284+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-1', 1, 'ContinuedAsNew', '2', '2026-11-18 06:29:17.294+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-2', 1, 'ContinuedAsNew', '2', '2026-11-18 06:29:17.327+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('reads-1', 1, 'Running', NULL, '2026-11-18 06:29:17.334+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('cancelled-1', 1, 'Failed', 'canceled: no longer needed', '2026-11-18 06:29:17.194+00', '2026-11-18 06:29:17.349+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('parent-1::sub::2', 1, 'Running', NULL, '2026-11-18 06:29:17.358+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-1', 2, 'ContinuedAsNew', '3', '2026-11-18 06:29:17.378+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-2', 2, 'ContinuedAsNew', '3', '2026-11-18 06:29:17.397+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-1', 3, 'Running', NULL, '2026-11-18 06:29:17.414+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('counts-2', 3, 'Completed', 'round 3, went, 3 keys', '2026-11-18 06:29:17.43+00', '2026-11-18 06:29:17.562+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('nap-short', 1, 'Running', NULL, '2026-11-18 06:29:17.768+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('family-1', 1, 'Running', NULL, '2026-11-18 06:29:17.782+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('family-1::sub::2', 1, 'Completed', 'Hello, Eve!', '2026-11-18 06:29:17.794+00', '2026-11-18 06:29:17.89+00', 0, 1, 32);
INSERT INTO peer.executions VALUES ('family-nap', 1, 'Running', NULL, '2026-11-18 06:29:17.934+00', NULL, 0, 1, 32);
INSERT INTO peer.executions VALUES ('detached-1', 1, 'Completed', 'Hello, detached!', '2026-11-18 06:29:17.922+00', '2026-11-18 06:29:18.009+00', 0, 1, 32);
INSERT INTO peer.history VALUES ('hello-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357046,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Hello","version":"1.0.0","input":"Ada","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.046+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357046,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"greets"}', '2026-11-18 06:29:17.046+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357046,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"colour","value":"blue","last_updated_at_ms":1794983357046}', '2026-11-18 06:29:17.046+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357046,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Greet","input":"Ada"}', '2026-11-18 06:29:17.046+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357105,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Hello","version":"1.0.0","input":"a\"b\\c🦀\n","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.106+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357105,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"greets"}', '2026-11-18 06:29:17.106+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357105,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"colour","value":"blue","last_updated_at_ms":1794983357105}', '2026-11-18 06:29:17.106+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357105,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Greet","input":"a\"b\\c🦀\n"}', '2026-11-18 06:29:17.106+00');
INSERT INTO peer.history VALUES ('fails-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"fails-1","execution_id":1,"timestamp_ms":1794983357110,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Fails","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.11+00');
INSERT INTO peer.history VALUES ('fails-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"fails-1","execution_id":1,"timestamp_ms":1794983357110,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Break","input":"now"}', '2026-11-18 06:29:17.11+00');
INSERT INTO peer.history VALUES ('nap-long', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"nap-long","execution_id":1,"timestamp_ms":1794983357133,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Sleeps","version":"1.0.0","input":"long","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.133+00');
INSERT INTO peer.history VALUES ('nap-long', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"nap-long","execution_id":1,"timestamp_ms":1794983357133,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":4948583357133}', '2026-11-18 06:29:17.133+00');
INSERT INTO peer.history VALUES ('waits-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"waits-1","execution_id":1,"timestamp_ms":1794983357143,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"x","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.143+00');
INSERT INTO peer.history VALUES ('waits-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"waits-1","execution_id":1,"timestamp_ms":1794983357143,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"state","value":"asked","last_updated_at_ms":1794983357143}', '2026-11-18 06:29:17.143+00');
INSERT INTO peer.history VALUES ('waits-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"waits-1","execution_id":1,"timestamp_ms":1794983357143,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits for approval"}', '2026-11-18 06:29:17.143+00');
INSERT INTO peer.history VALUES ('waits-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"waits-1","execution_id":1,"timestamp_ms":1794983357143,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"approval"}', '2026-11-18 06:29:17.143+00');
INSERT INTO peer.history VALUES ('waits-2', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"waits-2","execution_id":1,"timestamp_ms":1794983357163,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"x","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.163+00');
INSERT INTO peer.history VALUES ('waits-2', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"waits-2","execution_id":1,"timestamp_ms":1794983357163,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"state","value":"asked","last_updated_at_ms":1794983357163}', '2026-11-18 06:29:17.163+00');
INSERT INTO peer.history VALUES ('waits-2', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"waits-2","execution_id":1,"timestamp_ms":1794983357163,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits for approval"}', '2026-11-18 06:29:17.163+00');
INSERT INTO peer.history VALUES ('waits-2', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"waits-2","execution_id":1,"timestamp_ms":1794983357163,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"approval"}', '2026-11-18 06:29:17.163+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 5, 'Event', '{"event_id":5,"source_event_id":4,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357174,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"Hello, Ada!"}', '2026-11-18 06:29:17.174+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 6, 'Event', '{"event_id":6,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357174,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"greeting","value":"Hello, Ada!","last_updated_at_ms":1794983357174}', '2026-11-18 06:29:17.174+00');
INSERT INTO peer.history VALUES ('hello-1', 1, 7, 'Event', '{"event_id":7,"source_event_id":null,"instance_id":"hello-1","execution_id":1,"timestamp_ms":1794983357174,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"Hello, Ada!"}', '2026-11-18 06:29:17.174+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357193,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"x","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.194+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357193,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"state","value":"asked","last_updated_at_ms":1794983357193}', '2026-11-18 06:29:17.194+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357193,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits for approval"}', '2026-11-18 06:29:17.194+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357193,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"approval"}', '2026-11-18 06:29:17.194+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 5, 'Event', '{"event_id":5,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357458,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"orders","data":"second"}', '2026-11-18 06:29:17.458+00');
INSERT INTO peer.history VALUES ('fails-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":2,"instance_id":"fails-1","execution_id":1,"timestamp_ms":1794983357213,"duroxide_version":"0.1.32","type":"ActivityFailed","details":{"Application":{"kind":"ActivityFailed","message":"it is broken","retryable":false}}}', '2026-11-18 06:29:17.214+00');
INSERT INTO peer.history VALUES ('fails-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"fails-1","execution_id":1,"timestamp_ms":1794983357214,"duroxide_version":"0.1.32","type":"OrchestrationFailed","details":{"Application":{"kind":"OrchestrationFailed","message":"it is broken","retryable":false}}}', '2026-11-18 06:29:17.214+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 5, 'Event', '{"event_id":5,"source_event_id":4,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357234,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"Hello, a\"b\\c🦀\n!"}', '2026-11-18 06:29:17.234+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 6, 'Event', '{"event_id":6,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357234,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"greeting","value":"Hello, a\"b\\c🦀\n!","last_updated_at_ms":1794983357234}', '2026-11-18 06:29:17.234+00');
INSERT INTO peer.history VALUES ('hello-2', 1, 7, 'Event', '{"event_id":7,"source_event_id":null,"instance_id":"hello-2","execution_id":1,"timestamp_ms":1794983357234,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"Hello, a\"b\\c🦀\n!"}', '2026-11-18 06:29:17.234+00');
INSERT INTO peer.history VALUES ('work-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"work-1","execution_id":1,"timestamp_ms":1794983357247,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"plain","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.247+00');
INSERT INTO peer.history VALUES ('work-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"work-1","execution_id":1,"timestamp_ms":1794983357247,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"plain"}', '2026-11-18 06:29:17.247+00');
INSERT INTO peer.history VALUES ('work-session', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"work-session","execution_id":1,"timestamp_ms":1794983357273,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"session","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.273+00');
INSERT INTO peer.history VALUES ('work-session', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"work-session","execution_id":1,"timestamp_ms":1794983357273,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"session","session_id":"desk-1"}', '2026-11-18 06:29:17.273+00');
INSERT INTO peer.history VALUES ('parent-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"parent-1","execution_id":1,"timestamp_ms":1794983357284,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Parent","version":"1.0.0","input":"x","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.284+00');
INSERT INTO peer.history VALUES ('parent-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"parent-1","execution_id":1,"timestamp_ms":1794983357284,"duroxide_version":"0.1.32","type":"SubOrchestrationScheduled","name":"Waits","instance":"sub::2","input":"x"}', '2026-11-18 06:29:17.284+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357334,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Reads","version":"1.0.0","input":"","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.334+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357334,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"orders"}', '2026-11-18 06:29:17.334+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357793,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Hello","version":"1.0.0","input":"Eve","parent_instance":"family-1","parent_id":2,"parent_execution_id":1}', '2026-11-18 06:29:17.794+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357794,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"greets"}', '2026-11-18 06:29:17.794+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357794,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"colour","value":"blue","last_updated_at_ms":1794983357793}', '2026-11-18 06:29:17.794+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357794,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Greet","input":"Eve"}', '2026-11-18 06:29:17.794+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 5, 'Event', '{"event_id":5,"source_event_id":4,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357890,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"Hello, Eve!"}', '2026-11-18 06:29:17.89+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 6, 'Event', '{"event_id":6,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357890,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"greeting","value":"Hello, Eve!","last_updated_at_ms":1794983357890}', '2026-11-18 06:29:17.89+00');
INSERT INTO peer.history VALUES ('family-1::sub::2', 1, 7, 'Event', '{"event_id":7,"source_event_id":null,"instance_id":"family-1::sub::2","execution_id":1,"timestamp_ms":1794983357890,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"Hello, Eve!"}', '2026-11-18 06:29:17.89+00');
INSERT INTO peer.history VALUES ('family-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":2,"instance_id":"family-1","execution_id":1,"timestamp_ms":1794983357907,"duroxide_version":"0.1.32","type":"SubOrchestrationCompleted","result":"Hello, Eve!"}', '2026-11-18 06:29:17.907+00');
INSERT INTO peer.history VALUES ('family-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"family-1","execution_id":1,"timestamp_ms":1794983357907,"duroxide_version":"0.1.32","type":"OrchestrationChained","name":"Hello","instance":"detached-1","input":"detached"}', '2026-11-18 06:29:17.907+00');
INSERT INTO peer.history VALUES ('family-1', 1, 5, 'Event', '{"event_id":5,"source_event_id":null,"instance_id":"family-1","execution_id":1,"timestamp_ms":1794983357907,"duroxide_version":"0.1.32","type":"SubOrchestrationScheduled","name":"Sleeps","instance":"family-nap","input":"short"}', '2026-11-18 06:29:17.907+00');
INSERT INTO peer.history VALUES ('family-nap', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"family-nap","execution_id":1,"timestamp_ms":1794983357933,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Sleeps","version":"1.0.0","input":"short","parent_instance":"family-1","parent_id":5,"parent_execution_id":1}', '2026-11-18 06:29:17.934+00');
INSERT INTO peer.history VALUES ('family-nap', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"family-nap","execution_id":1,"timestamp_ms":1794983357933,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":1794983362933}', '2026-11-18 06:29:17.934+00');
INSERT INTO peer.history VALUES ('work-tag', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"work-tag","execution_id":1,"timestamp_ms":1794983357261,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Works","version":"1.0.0","input":"tag","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.261+00');
INSERT INTO peer.history VALUES ('work-tag', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"work-tag","execution_id":1,"timestamp_ms":1794983357261,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Work","input":"tag","tag":"gpu"}', '2026-11-18 06:29:17.261+00');
INSERT INTO peer.history VALUES ('counts-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-1","execution_id":1,"timestamp_ms":1794983357293,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.294+00');
INSERT INTO peer.history VALUES ('counts-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-1","execution_id":1,"timestamp_ms":1794983357293,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-1","value":"1","last_updated_at_ms":1794983357293}', '2026-11-18 06:29:17.294+00');
INSERT INTO peer.history VALUES ('counts-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-1","execution_id":1,"timestamp_ms":1794983357293,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"2"}', '2026-11-18 06:29:17.294+00');
INSERT INTO peer.history VALUES ('counts-2', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-2","execution_id":1,"timestamp_ms":1794983357327,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"1","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.327+00');
INSERT INTO peer.history VALUES ('counts-2', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-2","execution_id":1,"timestamp_ms":1794983357327,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-1","value":"1","last_updated_at_ms":1794983357327}', '2026-11-18 06:29:17.327+00');
INSERT INTO peer.history VALUES ('counts-2', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-2","execution_id":1,"timestamp_ms":1794983357327,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"2"}', '2026-11-18 06:29:17.327+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 5, 'Event', '{"event_id":5,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357348,"duroxide_version":"0.1.32","type":"OrchestrationCancelRequested","reason":"no longer needed"}', '2026-11-18 06:29:17.349+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 6, 'Event', '{"event_id":6,"source_event_id":4,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357349,"duroxide_version":"0.1.32","type":"ExternalSubscribedCancelled","reason":"orchestration_terminal"}', '2026-11-18 06:29:17.349+00');
INSERT INTO peer.history VALUES ('cancelled-1', 1, 7, 'Event', '{"event_id":7,"source_event_id":null,"instance_id":"cancelled-1","execution_id":1,"timestamp_ms":1794983357349,"duroxide_version":"0.1.32","type":"OrchestrationFailed","details":{"Application":{"kind":{"Cancelled":{"reason":"no longer needed"}},"message":"","retryable":false}}}', '2026-11-18 06:29:17.349+00');
INSERT INTO peer.history VALUES ('counts-2', 3, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-2","execution_id":3,"timestamp_ms":1794983357430,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"3","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.43+00');
INSERT INTO peer.history VALUES ('counts-2', 3, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-2","execution_id":3,"timestamp_ms":1794983357430,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-3","value":"3","last_updated_at_ms":1794983357430}', '2026-11-18 06:29:17.43+00');
INSERT INTO peer.history VALUES ('counts-2', 3, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-2","execution_id":3,"timestamp_ms":1794983357430,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}', '2026-11-18 06:29:17.43+00');
INSERT INTO peer.history VALUES ('parent-1::sub::2', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"parent-1::sub::2","execution_id":1,"timestamp_ms":1794983357358,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Waits","version":"1.0.0","input":"x","parent_instance":"parent-1","parent_id":2,"parent_execution_id":1}', '2026-11-18 06:29:17.358+00');
INSERT INTO peer.history VALUES ('parent-1::sub::2', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"parent-1::sub::2","execution_id":1,"timestamp_ms":1794983357358,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"state","value":"asked","last_updated_at_ms":1794983357358}', '2026-11-18 06:29:17.358+00');
INSERT INTO peer.history VALUES ('parent-1::sub::2', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"parent-1::sub::2","execution_id":1,"timestamp_ms":1794983357358,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"waits for approval"}', '2026-11-18 06:29:17.358+00');
INSERT INTO peer.history VALUES ('parent-1::sub::2', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"parent-1::sub::2","execution_id":1,"timestamp_ms":1794983357358,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"approval"}', '2026-11-18 06:29:17.358+00');
INSERT INTO peer.history VALUES ('counts-1', 3, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-1","execution_id":3,"timestamp_ms":1794983357414,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"3","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.414+00');
INSERT INTO peer.history VALUES ('counts-1', 3, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-1","execution_id":3,"timestamp_ms":1794983357414,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-3","value":"3","last_updated_at_ms":1794983357414}', '2026-11-18 06:29:17.414+00');
INSERT INTO peer.history VALUES ('counts-1', 3, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-1","execution_id":3,"timestamp_ms":1794983357414,"duroxide_version":"0.1.32","type":"ExternalSubscribed","name":"go"}', '2026-11-18 06:29:17.414+00');
INSERT INTO peer.history VALUES ('counts-1', 2, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-1","execution_id":2,"timestamp_ms":1794983357378,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.378+00');
INSERT INTO peer.history VALUES ('counts-1', 2, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-1","execution_id":2,"timestamp_ms":1794983357378,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-2","value":"2","last_updated_at_ms":1794983357378}', '2026-11-18 06:29:17.378+00');
INSERT INTO peer.history VALUES ('counts-1', 2, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-1","execution_id":2,"timestamp_ms":1794983357378,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"3"}', '2026-11-18 06:29:17.378+00');
INSERT INTO peer.history VALUES ('counts-2', 2, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"counts-2","execution_id":2,"timestamp_ms":1794983357397,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Counts","version":"1.0.0","input":"2","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.397+00');
INSERT INTO peer.history VALUES ('counts-2', 2, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"counts-2","execution_id":2,"timestamp_ms":1794983357397,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"round-2","value":"2","last_updated_at_ms":1794983357397}', '2026-11-18 06:29:17.397+00');
INSERT INTO peer.history VALUES ('counts-2', 2, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"counts-2","execution_id":2,"timestamp_ms":1794983357397,"duroxide_version":"0.1.32","type":"OrchestrationContinuedAsNew","input":"3"}', '2026-11-18 06:29:17.397+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357434,"duroxide_version":"0.1.32","type":"ExternalEventPersistent","name":"orders","data":"first"}', '2026-11-18 06:29:17.434+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357434,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"orders"}', '2026-11-18 06:29:17.434+00');
INSERT INTO peer.history VALUES ('counts-2', 3, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"counts-2","execution_id":3,"timestamp_ms":1794983357561,"duroxide_version":"0.1.32","type":"ExternalEvent","name":"go","data":"went"}', '2026-11-18 06:29:17.562+00');
INSERT INTO peer.history VALUES ('counts-2', 3, 5, 'Event', '{"event_id":5,"source_event_id":null,"instance_id":"counts-2","execution_id":3,"timestamp_ms":1794983357562,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"round 3, went, 3 keys"}', '2026-11-18 06:29:17.562+00');
INSERT INTO peer.history VALUES ('nap-short', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"nap-short","execution_id":1,"timestamp_ms":1794983357767,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Sleeps","version":"1.0.0","input":"short","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.768+00');
INSERT INTO peer.history VALUES ('nap-short', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"nap-short","execution_id":1,"timestamp_ms":1794983357768,"duroxide_version":"0.1.32","type":"TimerCreated","fire_at_ms":1794983362767}', '2026-11-18 06:29:17.768+00');
INSERT INTO peer.history VALUES ('family-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"family-1","execution_id":1,"timestamp_ms":1794983357782,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Family","version":"1.0.0","input":"Eve","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.782+00');
INSERT INTO peer.history VALUES ('family-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"family-1","execution_id":1,"timestamp_ms":1794983357782,"duroxide_version":"0.1.32","type":"SubOrchestrationScheduled","name":"Hello","instance":"sub::2","input":"Eve"}', '2026-11-18 06:29:17.782+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 5, 'Event', '{"event_id":5,"source_event_id":4,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983358009,"duroxide_version":"0.1.32","type":"ActivityCompleted","result":"Hello, detached!"}', '2026-11-18 06:29:18.009+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 6, 'Event', '{"event_id":6,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983358009,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"greeting","value":"Hello, detached!","last_updated_at_ms":1794983358009}', '2026-11-18 06:29:18.009+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 7, 'Event', '{"event_id":7,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983358009,"duroxide_version":"0.1.32","type":"OrchestrationCompleted","output":"Hello, detached!"}', '2026-11-18 06:29:18.009+00');
INSERT INTO peer.history VALUES ('reads-1', 1, 6, 'Event', '{"event_id":6,"source_event_id":null,"instance_id":"reads-1","execution_id":1,"timestamp_ms":1794983357458,"duroxide_version":"0.1.32","type":"ExternalSubscribedPersistent","name":"orders"}', '2026-11-18 06:29:17.458+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 1, 'Event', '{"event_id":1,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983357922,"duroxide_version":"0.1.32","type":"OrchestrationStarted","name":"Hello","version":"1.0.0","input":"detached","parent_instance":null,"parent_id":null}', '2026-11-18 06:29:17.922+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 2, 'Event', '{"event_id":2,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983357922,"duroxide_version":"0.1.32","type":"CustomStatusUpdated","status":"greets"}', '2026-11-18 06:29:17.922+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 3, 'Event', '{"event_id":3,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983357922,"duroxide_version":"0.1.32","type":"KeyValueSet","key":"colour","value":"blue","last_updated_at_ms":1794983357922}', '2026-11-18 06:29:17.922+00');
INSERT INTO peer.history VALUES ('detached-1', 1, 4, 'Event', '{"event_id":4,"source_event_id":null,"instance_id":"detached-1","execution_id":1,"timestamp_ms":1794983357922,"duroxide_version":"0.1.32","type":"ActivityScheduled","name":"Greet","input":"detached"}', '2026-11-18 06:29:17.922+00');
INSERT INTO peer.instances VALUES ('family-1', 'Family', '1.0.0', 1, '2026-11-18 06:29:17.782+00', '2026-11-18 06:29:17.907+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('family-nap', 'Sleeps', '1.0.0', 1, '2026-11-18 06:29:17.934+00', '2026-11-18 06:29:17.934+00', 'family-1', NULL, 0);
INSERT INTO peer.instances VALUES ('detached-1', 'Hello', '1.0.0', 1, '2026-11-18 06:29:17.922+00', '2026-11-18 06:29:18.009+00', NULL, 'greets', 1);
INSERT INTO peer.instances VALUES ('nap-long', 'Sleeps', '1.0.0', 1, '2026-11-18 06:29:17.133+00', '2026-11-18 06:29:17.133+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('waits-1', 'Waits', '1.0.0', 1, '2026-11-18 06:29:17.143+00', '2026-11-18 06:29:17.143+00', NULL, 'waits for approval', 1);
INSERT INTO peer.instances VALUES ('waits-2', 'Waits', '1.0.0', 1, '2026-11-18 06:29:17.163+00', '2026-11-18 06:29:17.163+00', NULL, 'waits for approval', 1);
INSERT INTO peer.instances VALUES ('hello-1', 'Hello', '1.0.0', 1, '2026-11-18 06:29:17.046+00', '2026-11-18 06:29:17.174+00', NULL, 'greets', 1);
INSERT INTO peer.instances VALUES ('fails-1', 'Fails', '1.0.0', 1, '2026-11-18 06:29:17.11+00', '2026-11-18 06:29:17.214+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('hello-2', 'Hello', '1.0.0', 1, '2026-11-18 06:29:17.106+00', '2026-11-18 06:29:17.234+00', NULL, 'greets', 1);
INSERT INTO peer.instances VALUES ('work-1', 'Works', '1.0.0', 1, '2026-11-18 06:29:17.247+00', '2026-11-18 06:29:17.247+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('work-tag', 'Works', '1.0.0', 1, '2026-11-18 06:29:17.261+00', '2026-11-18 06:29:17.261+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('work-session', 'Works', '1.0.0', 1, '2026-11-18 06:29:17.273+00', '2026-11-18 06:29:17.273+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('parent-1', 'Parent', '1.0.0', 1, '2026-11-18 06:29:17.284+00', '2026-11-18 06:29:17.284+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('cancelled-1', 'Waits', '1.0.0', 1, '2026-11-18 06:29:17.194+00', '2026-11-18 06:29:17.349+00', NULL, 'waits for approval', 1);
INSERT INTO peer.instances VALUES ('parent-1::sub::2', 'Waits', '1.0.0', 1, '2026-11-18 06:29:17.358+00', '2026-11-18 06:29:17.358+00', 'parent-1', 'waits for approval', 1);
INSERT INTO peer.instances VALUES ('counts-1', 'Counts', '1.0.0', 3, '2026-11-18 06:29:17.294+00', '2026-11-18 06:29:17.414+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('reads-1', 'Reads', '1.0.0', 1, '2026-11-18 06:29:17.334+00', '2026-11-18 06:29:17.458+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('counts-2', 'Counts', '1.0.0', 3, '2026-11-18 06:29:17.327+00', '2026-11-18 06:29:17.562+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('nap-short', 'Sleeps', '1.0.0', 1, '2026-11-18 06:29:17.768+00', '2026-11-18 06:29:17.768+00', NULL, NULL, 0);
INSERT INTO peer.instances VALUES ('family-1::sub::2', 'Hello', '1.0.0', 1, '2026-11-18 06:29:17.794+00', '2026-11-18 06:29:17.89+00', 'family-1', 'greets', 1);
INSERT INTO peer.kv_delta VALUES ('waits-1', 'state', 'asked', 1794983357143);
INSERT INTO peer.kv_delta VALUES ('waits-2', 'state', 'asked', 1794983357163);
INSERT INTO peer.kv_delta VALUES ('parent-1::sub::2', 'state', 'asked', 1794983357358);
INSERT INTO peer.kv_delta VALUES ('counts-1', 'round-3', '3', 1794983357414);
INSERT INTO peer.kv_store VALUES ('hello-1', 'colour', 'blue', 1, 1794983357046);
INSERT INTO peer.kv_store VALUES ('hello-1', 'greeting', 'Hello, Ada!', 1, 1794983357174);
INSERT INTO peer.kv_store VALUES ('hello-2', 'colour', 'blue', 1, 1794983357105);
INSERT INTO peer.kv_store VALUES ('hello-2', 'greeting', 'Hello, a"b\c🦀
!', 1, 1794983357234);
INSERT INTO peer.kv_store VALUES ('counts-1', 'round-1', '1', 1, 1794983357293);
INSERT INTO peer.kv_store VALUES ('counts-2', 'round-1', '1', 1, 1794983357327);
INSERT INTO peer.kv_store VALUES ('cancelled-1', 'state', 'asked', 1, 1794983357193);
INSERT INTO peer.kv_store VALUES ('counts-1', 'round-2', '2', 2, 1794983357378);
INSERT INTO peer.kv_store VALUES ('counts-2', 'round-2', '2', 2, 1794983357397);
INSERT INTO peer.kv_store VALUES ('counts-2', 'round-3', '3', 3, 1794983357430);
INSERT INTO peer.kv_store VALUES ('family-1::sub::2', 'colour', 'blue', 1, 1794983357793);
INSERT INTO peer.kv_store VALUES ('family-1::sub::2', 'greeting', 'Hello, Eve!', 1, 1794983357890);
INSERT INTO peer.kv_store VALUES ('detached-1', 'colour', 'blue', 1, 1794983357922);
INSERT INTO peer.kv_store VALUES ('detached-1', 'greeting', 'Hello, detached!', 1, 1794983358009);
INSERT INTO peer.orchestrator_queue VALUES (8, 'nap-long', '{"TimerFired": {"id": 2, "instance": "nap-long", "fire_at_ms": 4948583357133, "execution_id": 1}}', '2126-10-25 06:29:17.133+00', NULL, NULL, '2026-11-18 06:29:17.133+00', 0);
INSERT INTO peer.orchestrator_queue VALUES (30, 'nap-short', '{"TimerFired": {"id": 2, "instance": "nap-short", "fire_at_ms": 1794983362767, "execution_id": 1}}', '2026-11-18 06:29:22.767+00', NULL, NULL, '2026-11-18 06:29:17.768+00', 0);
INSERT INTO peer.orchestrator_queue VALUES (36, 'family-nap', '{"TimerFired": {"id": 2, "instance": "family-nap", "fire_at_ms": 1794983362933, "execution_id": 1}}', '2026-11-18 06:29:22.933+00', NULL, NULL, '2026-11-18 06:29:17.934+00', 0);
INSERT INTO peer.orchestrator_queue VALUES (38, 'waits-2', '{"ExternalRaised":{"instance":"waits-2","name":"approval","data":"Grace"}}', '2026-11-18 06:29:18.065+00', NULL, NULL, '2026-11-18 06:29:18.069975+00', 0);
INSERT INTO peer.orchestrator_queue VALUES (39, 'reads-1', '{"QueueMessage":{"instance":"reads-1","name":"orders","data":"third"}}', '2026-11-18 06:29:18.077+00', NULL, NULL, '2026-11-18 06:29:18.078017+00', 0);
INSERT INTO peer.orchestrator_queue VALUES (40, 'late-1', '{"StartOrchestration":{"instance":"late-1","orchestration":"Hello","input":"Lin","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}', '2026-11-18 06:29:18.089+00', NULL, NULL, '2026-11-18 06:29:18.090068+00', 0);
INSERT INTO peer.sessions VALUES ('desk-1', 'work-0-1b15', 1794983387282, 1794983357282);
INSERT INTO peer.worker_queue VALUES (5, '{"ActivityExecute": {"id": 2, "tag": "gpu", "name": "Work", "input": "tag", "instance": "work-tag", "execution_id": 1}}', '2026-11-18 06:29:17.261+00', NULL, NULL, '2026-11-18 06:29:17.261+00', 0, 'work-tag', 1, 2, NULL, 'gpu');
INSERT INTO peer.worker_queue VALUES (4, '{"ActivityExecute": {"id": 2, "name": "Work", "input": "plain", "instance": "work-1", "execution_id": 1}}', '2026-11-18 06:29:17.247+00', 'lock_be0b7be2-1f33-4334-9c1b-09dca43926e7', 1794983387269, '2026-11-18 06:29:17.247+00', 1, 'work-1', 1, 2, NULL, NULL);
INSERT INTO peer.worker_queue VALUES (6, '{"ActivityExecute": {"id": 2, "name": "Work", "input": "session", "instance": "work-session", "session_id": "desk-1", "execution_id": 1}}', '2026-11-18 06:29:17.273+00', 'lock_13a65146-c965-4e04-b60b-fe986e3519c8', 1794983387282, '2026-11-18 06:29:17.273+00', 1, 'work-session', 1, 2, 'desk-1', NULL);
