//! The store that is compared, and direct access to its content.

use super::ops::Damage;
use async_trait::async_trait;
use outlast_provider::{Clock, MessageBound, Provider};
use std::sync::atomic::{AtomicU64, Ordering};

/// A store under comparison. It starts empty, and its clock is set by [`Subject::set_time`].
#[async_trait(?Send)]
pub trait Subject {
    /// The store, with a management interface.
    fn provider(&self) -> &dyn Provider;

    /// The bound of messages per fetch.
    fn message_bound(&self) -> MessageBound {
        MessageBound::default()
    }

    /// Whether the store commits the first turn of an instance with its start. Other stores queue every start.
    fn starts_with_turn(&self) -> bool {
        true
    }

    /// Sets the clock of the store, forward or backward.
    async fn set_time(&mut self, now_ms: u64);

    /// Closes the store and opens it again.
    async fn reopen(&mut self);

    /// All stored rows, in the lines of `MemoryProvider::dump`, in any order; and another line for each
    /// contradiction between rows.
    async fn dump(&self) -> Vec<String>;

    /// Replaces stored texts of an instance by [`DAMAGED`].
    async fn damage(&self, what: Damage, instance: &str);

    /// The stored history of an execution, decodable or not.
    async fn stored(&self, instance: &str, execution: u64) -> Stored;
}

/// A text that does not decode.
pub const DAMAGED: &str = "NOT_VALID_JSON{{{";

/// The content of a history.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stored {
    /// The highest event id, 0 without events.
    pub last_event: u64,
    /// Whether there is an event of the kind `OrchestrationCompleted`, `OrchestrationFailed` or
    /// `OrchestrationContinuedAsNew`.
    pub is_over: bool,
}

/// A clock that is set by the comparison, for stores that use a [`Clock`].
#[derive(Debug, Default)]
pub struct Hand(AtomicU64);

impl Hand {
    /// Sets it.
    pub fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
