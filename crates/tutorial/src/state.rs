//! The tables. Events and messages are kept as JSON text, exactly as they were encoded.

use outlast_provider::model::ExecutionStatus;
use outlast_provider::{Entropy, OsEntropy, ProviderError, saturating_ms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

// guide: tables
/// All rows of the store.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// By instance id.
    pub(crate) instances: BTreeMap<String, Instance>,
    /// By instance id and execution id. An execution exists independently of its instance row.
    pub(crate) executions: BTreeMap<String, BTreeMap<u64, Execution>>,
    /// By instance id, execution id and event id.
    pub(crate) history: BTreeMap<String, BTreeMap<u64, BTreeMap<u64, String>>>,
    /// The orchestrator queue, by ordinal.
    pub(crate) messages: BTreeMap<u64, Message>,
    /// The lease on each leased instance, by instance id.
    pub(crate) leases: BTreeMap<String, Lease>,
    /// The worker queue, by ordinal.
    pub(crate) activities: BTreeMap<u64, Activity>,
    /// By session id.
    pub(crate) sessions: BTreeMap<String, Session>,
    /// Values after the last ended execution, by instance id and key.
    pub(crate) kv_store: BTreeMap<String, BTreeMap<String, Value>>,
    /// Changes of the current execution, by instance id and key; `None` removes the key.
    pub(crate) kv_delta: BTreeMap<String, BTreeMap<String, Option<Value>>>,
    /// Messages and activities that cannot be delivered, oldest first.
    pub(crate) dead_letters: Vec<DeadRow>,
    /// The last ordinal that was given out. Ordinals only grow.
    pub(crate) last_ordinal: u64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) instance: String,
    pub(crate) text: String,
    /// Whether the message starts an execution.
    pub(crate) begins: bool,
    /// When the message may be fetched. A delay moves it.
    pub(crate) visible_at: u64,
    /// When the message was first visible. It never changes and gives the order within a batch.
    pub(crate) available_at: u64,
    /// The lease that covers the message.
    pub(crate) token: Option<String>,
    pub(crate) attempts: u32,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Activity {
    pub(crate) instance: String,
    pub(crate) execution_id: u64,
    pub(crate) activity_id: u64,
    pub(crate) session: Option<String>,
    pub(crate) tag: Option<String>,
    pub(crate) text: String,
    pub(crate) visible_at: u64,
    pub(crate) lease: Option<Lease>,
    pub(crate) attempts: u32,
}
// guide: end

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(crate) orchestration_name: String,
    pub(crate) orchestration_version: String,
    pub(crate) current_execution: u64,
    pub(crate) parent: Option<String>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    /// The order of creation. Two instances can be created in the same millisecond.
    pub(crate) ordinal: u64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Execution {
    pub(crate) status: String,
    pub(crate) output: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) completed_at: Option<u64>,
    pub(crate) pinned_version: Option<String>,
}

impl Execution {
    pub(crate) fn is_running(&self) -> bool {
        self.status == ExecutionStatus::Running.as_str()
    }
}

// guide: lease
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lease {
    pub(crate) token: String,
    pub(crate) locked_until: u64,
}

impl Lease {
    /// A new lease that begins now. Its token has 128 random bits, so that it cannot be guessed.
    pub(crate) fn begin(now: u64, lock_timeout: Duration) -> Self {
        Self { token: format!("lock_{:032x}", OsEntropy.next_u128()), locked_until: after(now, lock_timeout) }
    }

    pub(crate) fn is_held(&self, now: u64) -> bool {
        self.locked_until > now
    }

    /// Moves the end of the lease, never to an earlier time.
    pub(crate) fn extend(&mut self, now: u64, extend_for: Duration) {
        self.locked_until = self.locked_until.max(after(now, extend_for));
    }
}

/// The time after a duration. Callers may pass `Duration::MAX`.
pub(crate) fn after(now: u64, duration: Duration) -> u64 {
    now.saturating_add(saturating_ms(duration))
}
// guide: end

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) owner: String,
    pub(crate) locked_until: u64,
    pub(crate) last_activity_at: u64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Value {
    pub(crate) text: String,
    pub(crate) last_updated_at_ms: u64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeadRow {
    pub(crate) is_activity: bool,
    pub(crate) instance: String,
    pub(crate) text: String,
    pub(crate) reason: String,
    pub(crate) attempts: u32,
    pub(crate) dead_at: u64,
}

impl State {
    /// The next ordinal, above all others.
    pub(crate) fn next_ordinal(&mut self) -> u64 {
        self.last_ordinal += 1;
        self.last_ordinal
    }

    /// The highest execution id, 1 if there is none.
    pub(crate) fn newest_execution(&self, instance: &str) -> u64 {
        self.executions.get(instance).and_then(|all| all.keys().next_back().copied()).unwrap_or(1)
    }

    pub(crate) fn execution(&self, instance: &str, execution_id: u64) -> Option<&Execution> {
        self.executions.get(instance)?.get(&execution_id)
    }

    pub(crate) fn current_execution(&self, instance: &str) -> Option<&Execution> {
        self.execution(instance, self.instances.get(instance)?.current_execution)
    }

    pub(crate) fn is_running(&self, instance: &str) -> bool {
        self.current_execution(instance).is_some_and(Execution::is_running)
    }

    /// The stored texts of an execution's events, by ascending event id.
    pub(crate) fn event_texts(&self, instance: &str, execution_id: u64) -> impl Iterator<Item = &str> {
        let events = self.history.get(instance).and_then(|executions| executions.get(&execution_id));
        events.into_iter().flat_map(|events| events.values().map(String::as_str))
    }
}

/// A permanent error: the same call cannot succeed.
pub(crate) fn refuse<T>(operation: &str, message: impl Into<String>) -> Result<T, ProviderError> {
    Err(ProviderError::permanent(operation, message))
}
