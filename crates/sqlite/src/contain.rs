//! Panics inside the store: contained, reported, and paid for by the call that caused them.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a step of the store; `None` if it panicked. The caller must throw away whatever the step may have left half-done: the
/// transaction always, and the connection of a store on a file.
pub(crate) fn contain<T>(step: impl FnOnce() -> T) -> Option<T> {
    // The payload of the panic may quote data, so it goes where the process's panic hook sends it, and nowhere else.
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
