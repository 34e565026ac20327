-- One row per instance, from its first commit with name and version on. The implicit rowid is the order of creation.
CREATE TABLE instances (
    instance_id           TEXT    NOT NULL PRIMARY KEY,
    orchestration_name    TEXT    NOT NULL,
    orchestration_version TEXT,
    current_execution_id  INTEGER NOT NULL,
    parent_instance_id    TEXT,
    custom_status         TEXT,
    custom_status_version INTEGER NOT NULL DEFAULT 0,
    created_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL
);
CREATE INDEX instances_by_parent ON instances (parent_instance_id) WHERE parent_instance_id IS NOT NULL;

-- One row per execution; exists independently of the instance row.
CREATE TABLE executions (
    instance_id            TEXT    NOT NULL,
    execution_id           INTEGER NOT NULL,
    status                 TEXT    NOT NULL DEFAULT 'Running',
    output                 TEXT,
    started_at             INTEGER NOT NULL,
    completed_at           INTEGER,
    updated_at             INTEGER NOT NULL,
    duroxide_version_major INTEGER,
    duroxide_version_minor INTEGER,
    duroxide_version_patch INTEGER,
    duroxide_version_pre   TEXT,
    last_event_id          INTEGER NOT NULL DEFAULT 0,
    terminal_event_id      INTEGER,
    PRIMARY KEY (instance_id, execution_id)
) WITHOUT ROWID;
-- Running and failed executions, which are few beside the completed ones. Gauges and lists read this index.
CREATE INDEX executions_attention ON executions (status, started_at) WHERE status IN ('Running', 'Failed');

-- Append-only. Rows are stored in the order of their commits, so that the events of many instances in one transaction share
-- pages; clustering by instance would write a page per instance.
CREATE TABLE history (
    instance_id  TEXT    NOT NULL,
    execution_id INTEGER NOT NULL,
    event_id     INTEGER NOT NULL,
    event_type   TEXT    NOT NULL,
    event_data   TEXT    NOT NULL,
    PRIMARY KEY (instance_id, execution_id, event_id)
);

-- Messages for orchestrations. available_at never changes and orders a batch; a delay changes visible_at, which is never before
-- available_at. A row that is covered by the lease of its instance has the random part of the token of the lease. begins: 1 for a
-- start, 2 for the start of a successor, 0 for all other messages. A large text is stored in message_texts, because SQLite
-- rewrites a whole row when one of its columns changes; external_bytes is its length, NULL for a text in work_item.
-- ready: 1 for the messages by which fetches find their instance. The first message of an instance without a live lease is ready;
-- the messages behind it and the messages of a leased or held instance are not, so fetches do not visit them. The other index has the
-- messages of an instance in the order of delivery.
CREATE TABLE orchestrator_queue (
    id            INTEGER NOT NULL PRIMARY KEY,
    instance_id   TEXT    NOT NULL,
    visible_at    INTEGER NOT NULL,
    available_at  INTEGER NOT NULL,
    lock_token    BLOB,
    locked_until  INTEGER,
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    begins        INTEGER NOT NULL DEFAULT 0,
    ready         INTEGER NOT NULL DEFAULT 1,
    external_bytes   INTEGER,
    work_item     TEXT    NOT NULL
);
CREATE INDEX orchestrator_queue_ready ON orchestrator_queue (visible_at, id, instance_id) WHERE ready = 1;
CREATE INDEX orchestrator_queue_by_instance ON orchestrator_queue (instance_id, available_at, id, begins, visible_at);

-- The large texts of messages. A row is deleted with its message.
CREATE TABLE message_texts (
    message_id INTEGER NOT NULL PRIMARY KEY,
    work_item  TEXT    NOT NULL
);

-- At most one lease per instance. A token names its instance, so lock_token, its secret, needs no index. The first 8 bytes of a
-- secret name the owner of the lease, if the store object has one.
CREATE TABLE instance_locks (
    instance_id  TEXT    NOT NULL PRIMARY KEY,
    lock_token   BLOB    NOT NULL,
    locked_until INTEGER NOT NULL,
    locked_at    INTEGER NOT NULL
) WITHOUT ROWID;

-- Held instances. Fetches do not read this table: no message of a held instance is ready.
CREATE TABLE holds (
    instance_id TEXT    NOT NULL PRIMARY KEY,
    kind        TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    held_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- Activities. A token names its row, so lock_token, its random part, needs no index. delayed marks activities that were given
-- back with a delay; only their visible_at can be in the future.
CREATE TABLE worker_queue (
    id            INTEGER NOT NULL PRIMARY KEY,
    work_item     TEXT    NOT NULL,
    visible_at    INTEGER NOT NULL,
    lock_token    BLOB,
    locked_until  INTEGER,
    attempt_count INTEGER NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
    instance_id   TEXT    NOT NULL,
    execution_id  INTEGER NOT NULL,
    activity_id   INTEGER NOT NULL,
    session_id    TEXT,
    tag           TEXT,
    delayed       INTEGER NOT NULL DEFAULT 0,
    -- Failures that the handler has reported, and the text of the last one.
    failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    last_error    TEXT
);
CREATE INDEX worker_queue_ready ON worker_queue (tag) WHERE lock_token IS NULL;
CREATE INDEX worker_queue_leased ON worker_queue (locked_until) WHERE lock_token IS NOT NULL;
CREATE INDEX worker_queue_delayed ON worker_queue (visible_at) WHERE delayed = 1;
CREATE INDEX worker_queue_by_activity ON worker_queue (instance_id, execution_id, activity_id);
CREATE INDEX worker_queue_by_session ON worker_queue (session_id) WHERE session_id IS NOT NULL;

-- owner: the store object that leased or renewed the session last, as in the first bytes of a lock_token; NULL if it has no owner.
CREATE TABLE sessions (
    session_id       TEXT    NOT NULL PRIMARY KEY,
    worker_id        TEXT    NOT NULL,
    locked_until     INTEGER NOT NULL,
    last_activity_at INTEGER NOT NULL,
    owner            BLOB
) WITHOUT ROWID;
CREATE INDEX sessions_by_deadline ON sessions (locked_until);

-- Key-value state at the end of the last finished execution.
CREATE TABLE kv_store (
    instance_id        TEXT    NOT NULL,
    key                TEXT    NOT NULL,
    value              TEXT    NOT NULL,
    last_updated_at_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance_id, key)
) WITHOUT ROWID;

-- Changes of the current execution to the key-value state; a NULL value removes the key.
CREATE TABLE kv_delta (
    instance_id        TEXT    NOT NULL,
    key                TEXT    NOT NULL,
    value              TEXT,
    last_updated_at_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (instance_id, key)
) WITHOUT ROWID;

-- Messages and activities that cannot be delivered, with their stored text and the reason.
CREATE TABLE dead_letters (
    id            INTEGER NOT NULL PRIMARY KEY,
    queue         TEXT    NOT NULL,
    instance_id   TEXT,
    work_item     TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    attempt_count INTEGER NOT NULL,
    dead_at       INTEGER NOT NULL
);

-- Paused orchestrations: runtimes hold their instances before their code runs.
CREATE TABLE paused_orchestrations (
    orchestration TEXT    NOT NULL PRIMARY KEY,
    actor         TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    paused_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- Changes that operators and runtimes made to instances from outside. Records stay when their instance is deleted.
CREATE TABLE audit (
    id      INTEGER NOT NULL PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    target  TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    request TEXT,
    result  TEXT    NOT NULL
);

-- Keys of messages that were stored once. They are deleted with their instance.
CREATE TABLE message_keys (
    instance_id TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (instance_id, key)
) WITHOUT ROWID;

-- The newest report of each node. A report expires at expires_at, and is swept after kept_until.
CREATE TABLE nodes (
    node_id    TEXT    PRIMARY KEY NOT NULL,
    report     TEXT    NOT NULL,
    seen_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    kept_until INTEGER NOT NULL
);
