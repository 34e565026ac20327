//! The tables of the store.

use crate::node::Announced;
use crate::queue::{ActivityQueue, MessageQueue};
use crate::rules::Rules;
use outlast_provider::model::{Event, ExecutionStatus, json};
use outlast_provider::{AuditRecord, DeadLetter, HeldInstance, PausedOrchestration, ProviderError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// All stored rows, and the rules that operations on them follow. Events and messages are kept as text, so that tests can
/// damage them and sizes are real.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) rules: Rules,
    pub(crate) instances: BTreeMap<String, Instance>,
    pub(crate) executions: BTreeMap<String, BTreeMap<u64, Execution>>,
    pub(crate) history: BTreeMap<(String, u64), BTreeMap<u64, String>>,
    pub(crate) messages: MessageQueue,
    pub(crate) leases: BTreeMap<String, Lease>,
    pub(crate) activities: ActivityQueue,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) kv_store: BTreeMap<String, BTreeMap<String, Stored>>,
    pub(crate) kv_delta: BTreeMap<String, BTreeMap<String, Changed>>,
    /// Dead letters by number.
    pub(crate) dead_letters: BTreeMap<u64, DeadLetter>,
    pub(crate) last_dead_letter: u64,
    /// Keys of messages, by instance.
    pub(crate) message_keys: BTreeMap<String, BTreeSet<String>>,
    pub(crate) holds: BTreeMap<String, HeldInstance>,
    /// Paused orchestrations by name.
    pub(crate) paused: BTreeMap<String, PausedOrchestration>,
    pub(crate) audit: Vec<AuditRecord>,
    /// Reports by the id of their node.
    pub(crate) nodes: BTreeMap<String, Announced>,
    /// The instances of tokens whose lease was taken over.
    #[cfg(feature = "defects")]
    pub(crate) lost_leases: BTreeMap<String, String>,
    pub(crate) instances_created: u64,
}

#[derive(Clone)]
pub(crate) struct Instance {
    pub(crate) orchestration_name: String,
    pub(crate) orchestration_version: String,
    pub(crate) current_execution_id: u64,
    pub(crate) parent_instance_id: Option<String>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    /// Order of creation, which breaks ties of `created_at`.
    pub(crate) created_nth: u64,
}

#[derive(Clone)]
pub(crate) struct Execution {
    pub(crate) status: String,
    pub(crate) output: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) completed_at: Option<u64>,
    pub(crate) pinned: Option<semver::Version>,
}

#[derive(Clone)]
pub(crate) struct Lease {
    pub(crate) token: String,
    pub(crate) locked_until: u64,
    /// The fetch left visible messages behind, because it takes a bounded number.
    pub(crate) is_partial: bool,
    /// No caller holds the lease: it keeps the messages of an instance together until a delay is over.
    pub(crate) is_rest: bool,
}

impl Lease {
    /// A lease without a holder, which keeps messages that were left behind from overtaking messages that are delayed.
    pub(crate) fn of_rest(locked_until: u64) -> Self {
        Self { token: String::new(), locked_until, is_partial: false, is_rest: true }
    }
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) owner: String,
    pub(crate) locked_until: u64,
    pub(crate) last_activity_at: u64,
}

/// The value of a key after the last execution that ended.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) value: String,
    pub(crate) last_updated_at_ms: u64,
}

/// The change of a key by the current execution; no value means that the key was removed.
#[derive(Clone)]
pub(crate) struct Changed {
    pub(crate) value: Option<String>,
    pub(crate) last_updated_at_ms: u64,
}

impl State {
    /// The lease on an instance, if it is live.
    pub(crate) fn live_lease(&self, instance: &str, now: u64) -> Option<&Lease> {
        self.leases.get(instance).filter(|lease| lease.locked_until > now)
    }

    /// The instance whose lease has this token.
    pub(crate) fn instance_of_token(&self, token: &str) -> Option<String> {
        let held = self.leases.iter().find(|(_, lease)| lease.token == token && !lease.is_rest);
        held.map(|(instance, _)| instance.clone())
    }

    /// The highest execution id, 1 if there is none.
    pub(crate) fn latest_execution(&self, instance: &str) -> u64 {
        self.executions.get(instance).and_then(|all| all.keys().next_back().copied()).unwrap_or(1)
    }

    pub(crate) fn execution(&self, instance: &str, execution_id: u64) -> Option<&Execution> {
        self.executions.get(instance)?.get(&execution_id)
    }

    /// The instance's current execution, if it has a row.
    pub(crate) fn current_execution(&self, instance: &str) -> Option<&Execution> {
        self.execution(instance, self.instances.get(instance)?.current_execution_id)
    }

    pub(crate) fn is_running(&self, instance: &str) -> bool {
        self.current_execution(instance)
            .is_some_and(|execution| execution.status == ExecutionStatus::Running.as_str())
    }

    /// Whether the current execution has ended and has no successor.
    pub(crate) fn has_ended(&self, instance: &str) -> bool {
        let current = self.current_execution(instance);
        let status = current.and_then(|execution| ExecutionStatus::from_text(&execution.status));
        status.is_some_and(ExecutionStatus::ends_instance)
    }

    pub(crate) fn event_texts(&self, instance: &str, execution_id: u64) -> impl Iterator<Item = &String> {
        self.history.get(&(instance.to_string(), execution_id)).into_iter().flat_map(BTreeMap::values)
    }

    pub(crate) fn last_event_id(&self, instance: &str, execution_id: u64) -> u64 {
        let events = self.history.get(&(instance.to_string(), execution_id));
        events.and_then(|events| events.keys().next_back().copied()).unwrap_or(0)
    }

    /// All events of an execution, or the reason why an event does not decode.
    pub(crate) fn events(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>, String> {
        let decoded = self.event_texts(instance, execution_id).map(|text| json::decode_event(text));
        decoded
            .collect::<Result<_, _>>()
            .map_err(|error| format!("history of instance '{instance}', execution {execution_id}: {error}"))
    }

    /// The events of an execution after an event, at most `limit`, or the reason why one of them does not decode.
    pub(crate) fn history_page(
        &self,
        instance: &str,
        execution_id: u64,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, ProviderError> {
        let events = self.history.get(&(instance.to_string(), execution_id));
        let later = events.into_iter().flat_map(|all| all.range((Bound::Excluded(after), Bound::Unbounded)));
        let decoded = later.take(limit).map(|(_, text)| json::decode_event(text));
        decoded.collect::<Result<_, _>>().map_err(|error| {
            let reason = format!("history of instance '{instance}', execution {execution_id}: {error}");
            ProviderError::permanent("history_page", reason)
        })
    }

    /// Ids of direct children.
    pub(crate) fn children(&self, parent: &str) -> Vec<String> {
        let children =
            self.instances.iter().filter(|(_, row)| row.parent_instance_id.as_deref() == Some(parent));
        children.map(|(id, _)| id.clone()).collect()
    }
}

/// A permanent refusal.
pub(crate) fn refuse<T>(operation: &str, message: impl Into<String>) -> Result<T, ProviderError> {
    Err(ProviderError::permanent(operation, message))
}

/// Whether a status ends an execution.
pub(crate) fn is_final(status: &str) -> bool {
    ExecutionStatus::from_text(status).is_some_and(ExecutionStatus::ends_execution)
}
