//! Settings of a store.

use crate::password::PasswordSource;
use outlast_provider::{Entropy, MessageBound, OsEntropy};
use outlast_provider_kit::migrations::Migration;
use outlast_provider_kit::orphans::DEFAULT_LIFE_MS;
use outlast_provider_kit::url::shown;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// The changes that opening a store may make to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrationPolicy {
    /// Creates the schema if it is missing and applies due migrations, for a role that may create tables.
    #[default]
    ApplyAll,
    /// Changes nothing and refuses a schema that is not up to date, for a role that may only read and write rows.
    VerifyOnly,
}

/// The address of the server, and the settings of connections.
#[derive(Clone)]
#[non_exhaustive]
pub enum ConnectionConfig {
    /// A URL (`postgres://user:password@host/database?sslmode=verify-full`) or a list of `key=value` pairs.
    Url(String),
}

impl fmt::Debug for ConnectionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Url").field(&shown_pairs(url)).finish(),
        }
    }
}

/// A URL without secrets. Of `key=value` pairs, the text shows their form only.
pub(crate) fn shown_pairs(url: &str) -> String {
    match url.contains("://") {
        true => shown(url),
        false => "key=value pairs".to_string(),
    }
}

/// The location and the settings of a store. The defaults suit most programs.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// The address of the server, and the settings of connections.
    pub connection: ConnectionConfig,
    /// The schema; `public` if not given.
    pub schema_name: Option<String>,
    /// The changes that opening may make to the schema.
    pub migration_policy: MigrationPolicy,
    /// Most connections at a time, beside the connection of the listener. If not given: `OUTLAST_PG_POOL_MAX`,
    /// `DUROXIDE_PG_POOL_MAX`, or 10.
    pub pool_size: Option<usize>,
    /// The number of transactions that this process sends at a time. A larger number does not make the process faster: concurrent
    /// calls share transactions.
    pub lanes: usize,
    /// The name under which connections show in `pg_stat_activity`.
    pub application_name: String,
    /// The longest duration of a statement, after which the server cancels the statement. `None` keeps the server's setting.
    pub statement_timeout: Option<Duration>,
    /// Whether each connection prepares the statements of its transactions once. A PgBouncer that pools transactions needs
    /// version 1.21 and `max_prepared_statements` for that.
    pub prepare: bool,
    /// The longest wait for a connection of the pool, and for the server to accept one.
    pub acquire_timeout: Duration,
    /// The longest wait for a transaction or a read before its connection is closed: a network that swallows packets and a slow
    /// server look the same.
    pub deadline: Duration,
    /// The deadline for migrations, and for transactions that delete instances or prune executions.
    pub long_deadline: Duration,
    /// Whether transactions set `lock_timeout`, `idle_in_transaction_session_timeout` and, unless this configuration gives one,
    /// `statement_timeout` below the deadline, so that the server undoes the transactions of a lost client.
    pub session_limits: bool,
    /// The source of the password of each new connection; without one, the password of the URL.
    pub password: Option<PasswordSource>,
    /// Whether a separate connection receives notifications of commits of other processes. Behind a PgBouncer that pools
    /// transactions it receives none, and waiting fetches poll.
    pub listen: bool,
    /// The interval at which waiting fetches poll while notifications cannot be received.
    pub poll_interval: Duration,
    /// The interval at which waiting fetches poll while notifications can be received, in case one is lost.
    pub idle_poll_interval: Duration,
    /// The number of messages of an instance that one fetch of a turn takes. The rest comes with the next turns.
    pub message_bound: MessageBound,
    /// The time for which a control message for an instance that never starts is kept.
    pub orphan_life: Duration,
    /// Sends a lone commit through the function for batches, so that tests can compare both functions.
    #[doc(hidden)]
    pub batches_only: bool,
    /// Panics that tests cause inside of the store.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub faults: Option<crate::steps::Faults>,
    /// Migrations after those of this release, with which tests play a later release.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub further_migrations: Vec<Migration>,
    /// The source of the store's lock tokens.
    pub entropy: Arc<dyn Entropy>,
}

impl ProviderConfig {
    /// A store at this URL.
    pub fn url(database_url: impl Into<String>) -> Self {
        Self {
            connection: ConnectionConfig::Url(database_url.into()),
            schema_name: None,
            migration_policy: MigrationPolicy::ApplyAll,
            pool_size: None,
            lanes: 2,
            application_name: "outlast".to_string(),
            statement_timeout: None,
            prepare: true,
            acquire_timeout: Duration::from_secs(30),
            deadline: Duration::from_secs(10),
            long_deadline: Duration::from_secs(300),
            session_limits: true,
            password: None,
            listen: true,
            poll_interval: Duration::from_millis(50),
            idle_poll_interval: Duration::from_secs(1),
            message_bound: MessageBound::default(),
            orphan_life: Duration::from_millis(DEFAULT_LIFE_MS),
            batches_only: false,
            #[cfg(feature = "test-hooks")]
            faults: None,
            #[cfg(feature = "test-hooks")]
            further_migrations: further_of_environment(),
            entropy: Arc::new(OsEntropy),
        }
    }

    /// In this schema.
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema_name = Some(name.into());
        self
    }

    /// With this migration policy.
    pub fn migrations(mut self, policy: MigrationPolicy) -> Self {
        self.migration_policy = policy;
        self
    }

    /// With at most this many connections, at least two.
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = Some(connections);
        self
    }

    /// With this many transactions at a time.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// Under this name in `pg_stat_activity`.
    pub fn application_name(mut self, name: impl Into<String>) -> Self {
        self.application_name = name.into();
        self
    }

    /// With this limit for each statement, after which the server cancels it.
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = Some(timeout);
        self
    }

    /// With this deadline for the answer of the server to a transaction or a read.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// With this deadline for migrations, deletions and pruning.
    pub fn long_deadline(mut self, deadline: Duration) -> Self {
        self.long_deadline = deadline;
        self
    }

    /// With or without limits that the server enforces.
    pub fn session_limits(mut self, sets: bool) -> Self {
        self.session_limits = sets;
        self
    }

    /// With this callback, which returns the password of each new connection, such as a token of a cloud that expires. A failure of
    /// the callback is a retryable error; the password is never logged.
    pub fn password_with<F, P>(mut self, callback: F) -> Self
    where
        F: Fn() -> P + Send + Sync + 'static,
        P: Future<Output = Result<String, Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        self.password = Some(PasswordSource::new(callback));
        self
    }

    /// With or without prepared statements.
    pub fn prepare(mut self, prepare: bool) -> Self {
        self.prepare = prepare;
        self
    }

    /// With or without a listening connection.
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// With fetches that take no more messages than this.
    pub fn message_bound(mut self, bound: MessageBound) -> Self {
        self.message_bound = bound;
        self
    }

    /// Migrations after those of this release: none, except in tests.
    pub(crate) fn further_migrations(&self) -> &[Migration] {
        #[cfg(feature = "test-hooks")]
        let further = self.further_migrations.as_slice();
        #[cfg(not(feature = "test-hooks"))]
        let further = &[];
        further
    }

    /// The pool size in force: every lane needs a connection, and so do reads.
    pub(crate) fn connections(&self) -> usize {
        let from = |name: &str| std::env::var(name).ok()?.trim().parse::<usize>().ok();
        let asked = self
            .pool_size
            .or_else(|| from("OUTLAST_PG_POOL_MAX"))
            .or_else(|| from("DUROXIDE_PG_POOL_MAX"))
            .unwrap_or(10);
        asked.max(2)
    }

    /// Whether there is a connection for client requests while all lanes are in use.
    pub(crate) fn has_client_lane(&self) -> bool {
        self.connections() > self.lanes_in_force() + 1
    }

    /// The number of lanes in force.
    pub(crate) fn lanes_in_force(&self) -> usize {
        self.lanes.clamp(1, self.connections() - 1)
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

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("connection", &self.connection)
            .field("schema_name", &self.schema_name)
            .field("migration_policy", &self.migration_policy)
            .field("pool_size", &self.pool_size)
            .field("lanes", &self.lanes)
            .field("application_name", &self.application_name)
            .field("statement_timeout", &self.statement_timeout)
            .field("prepare", &self.prepare)
            .field("acquire_timeout", &self.acquire_timeout)
            .field("deadline", &self.deadline)
            .field("long_deadline", &self.long_deadline)
            .field("session_limits", &self.session_limits)
            .field("password", &self.password)
            .field("listen", &self.listen)
            .field("poll_interval", &self.poll_interval)
            .field("idle_poll_interval", &self.idle_poll_interval)
            .field("message_bound", &self.message_bound)
            .field("orphan_life", &self.orphan_life)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        for url in
            ["postgres://me:s3cret@host/db", "host=h password=s3cret", "postgres://h/d?password=s3cret"]
        {
            let shown = format!("{:?}", ProviderConfig::url(url));
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }

    #[test]
    fn lanes_leave_a_connection_for_reads() {
        let config = ProviderConfig::url("").pool_size(3).lanes(9);
        assert_eq!((config.connections(), config.lanes_in_force()), (3, 2));
        let config = ProviderConfig::url("").pool_size(0).lanes(0);
        assert_eq!((config.connections(), config.lanes_in_force()), (2, 1));
    }
}
