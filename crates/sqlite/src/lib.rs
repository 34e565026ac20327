//! Outlast's embedded store: one SQLite file, nothing to install.
//!
//! One connection writes, on its own thread. Calls that wait for this thread are applied in one transaction and answered after
//! its commit, so that concurrent callers share one sync; a single call is committed at once. A parked fetch is served inside
//! the transaction that makes its item visible. Reads run on connections of their own. Several processes can use one file.
//!
//! Every acknowledged write is on disk (`synchronous = FULL`) unless [`SqliteOptions::synchronous`] says otherwise.

// The files that every store has, in the same order.
mod commit;

mod fetch;

mod activity;

mod park;

mod executor;

mod admin;

// The rest of the operations.
mod dead_letter;
mod delete;
#[cfg(feature = "test-hooks")]
mod dump;
mod examine;
mod history;
mod hold;
mod kv;
mod list;
mod maintenance;
mod message;
mod pending;
mod provider;
mod reset;
mod retention;
mod session;
mod start;
mod transfer;
mod watched;

// The way of a request to the writer or to a reader, and of leases back to the caller.
mod command;
mod connection;
mod large_requests;
mod leased;
mod owners;
mod readers;
mod threads;
mod transaction;
mod writer;

// The database file.
mod contain;
mod counters;
mod db;
mod error;
#[cfg(feature = "test-hooks")]
mod faults;
#[cfg(feature = "test-hooks")]
mod foreign_lock;
mod node;
mod open;
mod options;
mod schema;
mod sql;
mod url;
mod wal_prealloc;

#[cfg(test)]
mod plans;
#[cfg(test)]
mod sql_tests;

pub use counters::SqliteStats;
pub use error::SqliteError;
pub use examine::SqliteExamination;
#[cfg(feature = "test-hooks")]
pub use faults::{PreallocWrites, StatementFault, StatementFaults};
#[cfg(feature = "test-hooks")]
pub use foreign_lock::ForeignLock;
pub use options::{LockPatience, SqliteOptions, Synchronous};
pub use provider::SqliteProvider;
#[cfg(feature = "test-hooks")]
pub use url::check_url;
