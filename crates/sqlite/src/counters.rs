//! Counters of the store.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $what:literal])+ $name:ident,)+) => {
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        /// Figures since the store was opened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[non_exhaustive]
        pub struct SqliteStats {
            $($(#[doc = $what])+ pub $name: u64,)+
        }

        impl Counters {
            pub(crate) fn read(&self) -> SqliteStats {
                SqliteStats { $($name: self.$name.0.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Statements that ran, those of readers included, without transaction control.
    statements,
    /// Transactions that wrote something. At `synchronous = FULL` each is one sync.
    commits,
    /// Calls that shared those transactions.
    calls,
    /// Batches that were rolled back and applied again call by call, because a call failed after it had written something.
    batches_by_savepoints,
    /// History rows read.
    history_rows_read,
    /// Key-value rows read.
    kv_rows_read,
    /// Parked fetches that were served in the transaction that made their item visible.
    parked_fetches_served,
    /// Messages and activities that became dead letters.
    dead_letters,
    /// Connections that were opened again after a failed write or a panic.
    reopened,
    /// Panics inside the store that were contained.
    panics,
    /// Pauses of the writer for another process that also writes.
    yields_to_processes,
    /// Leases of turns, activities and sessions that the store ended because the process that held them is dead.
    leases_of_dead_processes,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
}
