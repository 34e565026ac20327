//! Outlast's store for many machines: one PostgreSQL, any number of processes.
//!
//! Concurrent calls of a process share transactions: a few lanes each take all that waits and send it as one transaction in one
//! round trip, every member of it fenced on its own. A fetch that waits for activities is served in the transaction that makes the
//! activities visible; what other processes commit is heard by `LISTEN`. Time is that of the server, so the clocks of workers decide
//! nothing.

mod activity;
mod admin;
mod batch;
mod columns;
mod connect;
mod contain;
mod counters;
mod db;
mod deadline;
mod delete;
mod eligibility;
mod error;
mod fetch;
mod hand_off;
mod history;
mod in_doubt;
mod kv;
mod lanes;
mod list;
mod listener;
mod message;
mod names;
mod options;
mod outcomes;
mod password;
mod pending;
mod provider;
mod reply;
mod request;
mod resend;
mod room;
mod schema;
mod serve;
mod session;
mod shared;
mod sql;
mod steps;
mod text;
mod tls;
mod transact;
mod transaction;
mod url;
mod waiting;

pub use counters::PostgresStats;
pub use error::PostgresError;
pub use options::{ConnectionConfig, MigrationPolicy, ProviderConfig};
pub use password::PasswordSource;
pub use provider::PostgresProvider;
#[cfg(feature = "test-hooks")]
pub use steps::{Faults, Step};
