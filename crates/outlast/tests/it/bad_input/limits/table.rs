//! The limits, and every operation that can exceed them.

use outlast::runtime::limits::Limits;

/// The code that exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Client,
    Orchestration,
    Activity,
}

use Way::{Activity, Client, Orchestration};

/// One operation that can exceed one limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) field: &'static str,
    pub(super) limit: usize,
    pub(super) way: Way,
    /// The name of the operation in the code that performs it.
    pub(super) what: &'static str,
}

/// Every limit with every operation that can exceed it.
pub(super) fn rows(limits: &Limits) -> Vec<Row> {
    // Without `..`: a new limit is a compile error until it has its rows here.
    let Limits {
        payload_bytes,
        decisions_per_turn,
        name_bytes,
        custom_status_bytes,
        tag_bytes,
        kv_value_bytes,
        kv_keys,
        // These limits do not reject a single call and have their own tests: of the history in `history.rs`, of its warning in the
        // engine, of the mailbox in `mailbox.rs`, of carried messages in `carried.rs`.
        history_events: _,
        history_events_warning: _,
        history_bytes: _,
        mailbox_messages: _,
        carry_forward_events: _,
        carry_forward_bytes: _,
    } = *limits;
    let mut rows = Vec::new();
    let mut add = |field, limit, way, all: &[&'static str]| {
        rows.extend(all.iter().map(|what| Row { field, limit, way, what }));
    };
    add("payload_bytes", payload_bytes, Client, PAYLOADS_SENT);
    add("payload_bytes", payload_bytes, Activity, PAYLOADS_SENT);
    add("payload_bytes", payload_bytes, Activity, &["result", "failure"]);
    let inside = [
        "activity-input",
        "session-input",
        "child-input",
        "detached-input",
        "output",
        "error",
        "retry-input",
    ];
    add("payload_bytes", payload_bytes, Orchestration, &inside);
    // The next execution parses the padded zero after these words.
    add("payload_bytes", payload_bytes - "next-input ".len(), Orchestration, &["next-input"]);
    add("name_bytes", name_bytes, Client, NAMES_SENT);
    add("name_bytes", name_bytes, Activity, NAMES_SENT);
    let inside = ["activity-name", "session-id", "event-name", "queue-name", "child-name", "detached-name"];
    add("name_bytes", name_bytes, Orchestration, &inside);
    add("name_bytes", name_bytes, Orchestration, &["key", "cleared-key"]);
    // Only orchestrations have these operations.
    add("tag_bytes", tag_bytes, Orchestration, &["activity-tag"]);
    add("custom_status_bytes", custom_status_bytes, Orchestration, &["status"]);
    add("kv_value_bytes", kv_value_bytes, Orchestration, &["value"]);
    add("kv_keys", kv_keys, Orchestration, &["keys"]);
    add("decisions_per_turn", decisions_per_turn, Orchestration, &["decisions"]);
    rows
}

const PAYLOADS_SENT: &[&str] = &[
    "start-input",
    "start-versioned-input",
    "start-typed-input",
    "event-data",
    "event-typed-data",
    "queue-data",
    "queue-typed-data",
    "reason",
    "request-input",
    "request-data",
];

const NAMES_SENT: &[&str] =
    &["start-name", "start-version", "event-name", "queue-name", "request-name", "request-queue"];
