//! Containment of panics inside the store: only the call that panics fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of the store; `None` if it panicked. The caller must then roll back the transaction, and close the connection of a
/// store on a file.
pub(crate) fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
    // The payload of the panic may contain data, so only the panic hook of the process gets it.
    catch_unwind(AssertUnwindSafe(step)).ok()
}

/// Logs that a step panicked.
pub(crate) fn report(operation: &str, instance: Option<&str>) {
    tracing::error!(
        target: "duroxide::providers::sqlite",
        operation, instance = instance.unwrap_or(""),
        "the store panicked; the transaction is undone and the connection is replaced"
    );
}
