//! Containment of panics inside the store: only the call that panics fails.

use crate::SqliteError;
use crate::db::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of the store; `None` if it panicked. The caller must then roll back the transaction, and close the connection of a
/// store on a file.
pub(crate) fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
    // The payload of the panic may contain data, so only the panic hook of the process gets it.
    catch_unwind(AssertUnwindSafe(step)).ok()
}

/// Whether a connection can be used after a job ran on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// The job panicked, so the connection must be replaced.
    Panicked,
}

/// Runs a job and says whether its connection can still be used; a panic becomes an error.
pub(crate) fn run_contained<T>(
    operation: &'static str,
    job: impl FnOnce() -> Result<T>,
) -> (Result<T>, Health) {
    match contain(job) {
        Some(done) => (done, Health::Good),
        None => {
            report(operation, None);
            (Err(SqliteError::Panicked { operation, instance: None }), Health::Panicked)
        }
    }
}

/// Logs that a step panicked.
pub(crate) fn report(operation: &str, instance: Option<&str>) {
    tracing::error!(
        target: "duroxide::providers::sqlite",
        operation, instance = instance.unwrap_or(""),
        "the store panicked; the transaction is undone and the connection is replaced"
    );
}
