//! Outlast's embedded store: one SQLite file, nothing to install.
//!
//! One connection writes, on its own thread. Calls that wait for it are applied in one transaction and answered when
//! that transaction is durable, so concurrent callers share the price of a sync; a lone call commits at once. A fetch
//! that waits for work is served inside the transaction that makes the work visible. Reads run on connections of their
//! own. Several processes can use one file.
//!
//! Every acknowledged write is on disk (`synchronous = FULL`) unless [`SqliteOptions::synchronous`] says otherwise.

mod admin;
#[cfg(test)]
mod answers;
mod command;
mod contain;
mod counters;
mod db;
mod delete;
#[cfg(feature = "test-hooks")]
mod dump;
mod error;
#[cfg(feature = "test-hooks")]
mod faults;
mod fetch;
mod handle;
mod history;
mod kv;
mod list;
mod log;
mod message;
mod open;
mod options;
mod pending;
#[cfg(test)]
mod plans;
mod provider;
mod schema;
mod serving;
mod session;
mod share;
mod sql;
mod start;
mod store;
mod threads;
mod tools;
mod url;
mod waiting;
mod work;
mod write;

pub use counters::SqliteStats;
pub use error::SqliteError;
#[cfg(feature = "test-hooks")]
pub use faults::{StatementFault, StatementFaults};
pub use options::{SqliteOptions, Synchronous};
pub use provider::SqliteProvider;
