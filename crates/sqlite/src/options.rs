//! Settings of a store.

use outlast_provider::{Clock, Entropy, MessageBound, OsEntropy, SystemClock};
use outlast_provider_kit::migrations::Migration;
use outlast_provider_kit::orphans::DEFAULT_LIFE_MS;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// When a commit counts as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Every commit is on disk before it is acknowledged. Survives power loss.
    #[default]
    Full,
    /// Commits survive a crash of the process, but the newest ones may be lost when the machine loses power: an
    /// acknowledged start, signal or completion can be lost. Only for data that can be reproduced.
    Normal,
}

impl Synchronous {
    pub(crate) fn pragma(self) -> (&'static str, i64) {
        match self {
            Self::Full => ("FULL", 2),
            Self::Normal => ("NORMAL", 1),
        }
    }
}

/// How long a statement waits for the lock of another process before its call fails with
/// [`SqliteError::Busy`](crate::SqliteError::Busy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::manual_non_exhaustive, reason = "the hidden variant exists only with `test-hooks`")]
pub enum LockPatience {
    /// About a minute. For programs that run orchestrations: another process may be migrating the store.
    #[default]
    Minute,
    /// About five seconds. For tools whose user waits for the answer.
    FiveSeconds,
    /// Not at all, for simulations: virtual time cannot pass while a statement waits.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    Nothing,
}

impl LockPatience {
    pub(crate) fn longest(self) -> Duration {
        match self {
            Self::Minute => Duration::from_secs(60),
            Self::FiveSeconds => Duration::from_secs(5),
            #[cfg(feature = "test-hooks")]
            Self::Nothing => Duration::ZERO,
        }
    }
}

/// Settings of a [`SqliteProvider`](crate::SqliteProvider). The defaults suit an embedded store.
#[derive(Clone)]
pub struct SqliteOptions {
    /// When a commit counts as stored.
    pub synchronous: Synchronous,
    /// Connections (and threads) for reads that need no write lock. An in-memory store reads on its writer.
    pub reader_connections: usize,
    /// Memory for SQLite's page cache, per connection.
    pub cache_bytes: usize,
    /// The length of the write-ahead log at which it is moved into the database.
    pub wal_limit_bytes: u64,
    /// How often a parked fetch checks for commits of other processes; at most every 10 ms.
    pub foreign_poll_interval: Duration,
    /// How long a statement waits for the lock of another process.
    pub lock_patience: LockPatience,
    /// How many messages of an instance one fetch of a turn takes. The next turns take the rest.
    pub message_bound: MessageBound,
    /// How long a control message for an instance that never starts is kept.
    pub orphan_life: Duration,
    /// Runs every operation on the calling task instead of on threads: for simulations on one thread and paused
    /// time. A caller then blocks its thread while SQLite works. Several such stores can use one file.
    pub inline: bool,
    /// The clock of the store.
    pub clock: Arc<dyn Clock>,
    /// The source of the secrets in lock tokens.
    pub entropy: Arc<dyn Entropy>,
    /// Makes statements fail, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub faults: Option<Arc<dyn crate::StatementFaults>>,
    /// Sees the writes that preallocate the write-ahead log, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub prealloc_writes: Option<Arc<dyn crate::PreallocWrites>>,
    /// Closes connections as a crash does: the last one leaves its write-ahead log, which the next one recovers.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub closes_like_a_crash: bool,
    /// Migrations after those of this release, with which tests play a later release.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub further_migrations: Vec<Migration>,
}

impl SqliteOptions {
    /// Migrations after those of this release: none, except in tests.
    pub(crate) fn further_migrations(&self) -> &[Migration] {
        #[cfg(feature = "test-hooks")]
        let further = self.further_migrations.as_slice();
        #[cfg(not(feature = "test-hooks"))]
        let further = &[];
        further
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            reader_connections: 2,
            cache_bytes: 8 << 20,
            wal_limit_bytes: 32 << 20,
            foreign_poll_interval: Duration::from_millis(45),
            lock_patience: LockPatience::default(),
            message_bound: MessageBound::default(),
            orphan_life: Duration::from_millis(DEFAULT_LIFE_MS),
            inline: false,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            #[cfg(feature = "test-hooks")]
            faults: None,
            #[cfg(feature = "test-hooks")]
            prealloc_writes: None,
            #[cfg(feature = "test-hooks")]
            closes_like_a_crash: false,
            #[cfg(feature = "test-hooks")]
            further_migrations: further_of_environment(),
        }
    }
}

/// The statements of one further migration, with which tests of the command play a later release.
#[cfg(feature = "test-hooks")]
fn further_of_environment() -> Vec<Migration> {
    let sql = std::env::var("OUTLAST_TEST_MIGRATION").ok();
    sql.map(|sql| Migration { version: 2, name: "next", usable_from: 1, sql: sql.leak() })
        .into_iter()
        .collect()
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("synchronous", &self.synchronous)
            .field("reader_connections", &self.reader_connections)
            .field("cache_bytes", &self.cache_bytes)
            .field("wal_limit_bytes", &self.wal_limit_bytes)
            .field("foreign_poll_interval", &self.foreign_poll_interval)
            .field("lock_patience", &self.lock_patience)
            .field("message_bound", &self.message_bound)
            .field("orphan_life", &self.orphan_life)
            .field("inline", &self.inline)
            .finish_non_exhaustive()
    }
}
