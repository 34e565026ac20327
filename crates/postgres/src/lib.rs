//! Outlast's store for many machines: one PostgreSQL, any number of processes.
//!
//! Concurrent calls of a process share transactions: a few lanes each take the waiting requests and send them as one transaction in
//! one round trip, and the server fences each of them on its own. A parked fetch is served in the transaction that stores its
//! message or activity; notifications (`LISTEN`) report commits of other processes. All times are those of the server: a wrong
//! clock of a worker changes no time in the store.

mod activity;
mod admin;
mod aside;
mod ask;
mod batch;
mod columns;
mod connect;
mod contain;
mod counters;
mod db;
mod dead_letter;
mod deadline;
#[cfg(feature = "test-hooks")]
mod defects;
mod delete;
mod eligibility;
mod error;
mod examine;
mod failed;
mod fetch;
mod functions;
mod hand_off;
mod history;
mod hold;
mod in_doubt;
mod kv;
mod lanes;
mod leased;
mod list;
mod listener;
mod message;
#[cfg(feature = "test-hooks")]
mod modelled;
mod mutant;
mod names;
mod node;
mod notify;
mod once;
mod options;
mod outcomes;
mod owner;
mod parked;
mod password;
mod pending;
mod provider;
mod reader;
mod reply;
mod request;
mod resend;
mod reset;
mod retention;
mod room;
mod row;
mod scheduler;
mod schema;
mod serve;
mod session;
mod shared;
mod sql;
mod steps;
mod text;
mod tls;
mod transaction;
mod transfer;
mod url;

pub use counters::PostgresStats;
pub use error::PostgresError;
pub use examine::PostgresExamination;
#[cfg(feature = "test-hooks")]
pub use modelled::{LinkFault, LinkFaults, ModelledServer, ModelledStore, ServerRows};
pub use options::{ConnectionConfig, MigrationPolicy, ProviderConfig};
pub use password::PasswordSource;
pub use provider::PostgresProvider;
pub use reader::PostgresReader;
#[cfg(feature = "test-hooks")]
pub use steps::{Faults, Step};
#[cfg(feature = "test-hooks")]
pub use url::check_url;
