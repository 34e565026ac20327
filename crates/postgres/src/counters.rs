//! Counters of a store.

use crate::batch::Batch;
use metrics::counter;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) transactions: Counter,
    pub(crate) round_trips: Counter,
    pub(crate) calls: Counter,
    pub(crate) polls: Counter,
    pub(crate) fetched: Counter,
    pub(crate) handed_off: Counter,
    pub(crate) alone: Counter,
    pub(crate) conflicts: Counter,
    retries: Counter,
    pub(crate) lost: Counter,
    pub(crate) dead_letters: Counter,
    pub(crate) history_rows_read: Counter,
    pub(crate) kv_rows_read: Counter,
    pub(crate) notifications: Counter,
    pub(crate) silent: Counter,
    pub(crate) resent: Counter,
    pub(crate) panics: Counter,
    pub(crate) leases_of_dead_processes: Counter,
}

/// Figures of a store since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresStats {
    /// Transactions that lanes committed.
    pub transactions: u64,
    /// Round trips to the server: transactions of lanes, and reads beside them.
    pub round_trips: u64,
    /// Calls and fetches that were answered by those transactions.
    pub calls: u64,
    /// Polls for waiting fetches.
    pub polls: u64,
    /// Turns and activities that fetches leased.
    pub fetched: u64,
    /// Turns and activities that were handed off: leased in the transaction that stored them, without a poll.
    pub handed_off: u64,
    /// Requests that were sent alone because their batch had failed.
    pub alone: u64,
    /// Transactions that the server gave up: deadlocks, serialization failures, time-outs.
    pub conflicts: u64,
    /// Requests that were sent again because the server had given their transaction up.
    pub retries: u64,
    /// Transactions whose connection was lost.
    pub lost: u64,
    /// Messages and activities that became dead letters.
    pub dead_letters: u64,
    /// Rows of histories that were read.
    pub history_rows_read: u64,
    /// Rows of key-value snapshots that were read.
    pub kv_rows_read: u64,
    /// Notifications of other processes that led to a poll or resolved watches.
    pub notifications: u64,
    /// Connections that were closed because the server did not answer before the deadline.
    pub silent: u64,
    /// Requests that were sent again under their lock token because the outcome of the first attempt was unknown.
    pub resent: u64,
    /// Panics inside of the store that were contained.
    pub panics: u64,
    /// Leases of turns, activities and sessions that the store ended because the process that held them is dead.
    pub leases_of_dead_processes: u64,
}

impl Counters {
    /// Counts the requests of a batch that are sent again.
    pub(crate) fn retried(&self, batch: &Batch) {
        self.retries.add(batch.len());
        for operation in batch.operations() {
            counter!("outlast_store_retries_total", "operation" => operation).increment(1);
            if operation == "ack_orchestration_item" {
                counter!("provider.ack_orchestration_retries").increment(1);
            }
        }
    }

    pub(crate) fn read(&self) -> PostgresStats {
        PostgresStats {
            transactions: self.transactions.read(),
            round_trips: self.round_trips.read(),
            calls: self.calls.read(),
            polls: self.polls.read(),
            fetched: self.fetched.read(),
            handed_off: self.handed_off.read(),
            alone: self.alone.read(),
            conflicts: self.conflicts.read(),
            retries: self.retries.read(),
            lost: self.lost.read(),
            dead_letters: self.dead_letters.read(),
            history_rows_read: self.history_rows_read.read(),
            kv_rows_read: self.kv_rows_read.read(),
            notifications: self.notifications.read(),
            silent: self.silent.read(),
            resent: self.resent.read(),
            panics: self.panics.read(),
            leases_of_dead_processes: self.leases_of_dead_processes.read(),
        }
    }
}
