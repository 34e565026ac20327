//! What the store did, counted.

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
    /// Statements run, those of readers included; transaction control apart.
    statements,
    /// Transactions that wrote something. At `synchronous = FULL` each is one sync.
    commits,
    /// Calls that shared those transactions.
    calls,
    /// Batches that were rolled back and applied again call by call, because one of them failed half-way.
    careful_batches,
    /// History rows read.
    history_rows_read,
    /// Key-value rows read.
    kv_rows_read,
    /// Fetches that were served in the transaction that made their work visible.
    fused_fetches,
    /// Messages that were set aside.
    dead_letters,
    /// Times that the connection was closed and opened again after a failed write.
    reopened,
    /// Panics inside the store that were contained.
    panics,
    /// Times that the writer stood back for another process that was seen to write as well.
    stood_back,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: usize) {
        self.0.fetch_add(n as u64, Ordering::Relaxed);
    }
}
