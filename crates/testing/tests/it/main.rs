//! Tests of the test kit: plain functions, as users write them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod children;
mod cookbook;
mod crashes;
mod figures;
mod guide;
mod messages;
mod mistake;
mod mocks;
mod page;
mod patch;
mod replay;
mod snapshots;
mod time;
mod trouble;
mod undo;
mod upgrading;

/// The text of the panic of a function.
fn panic_of(run: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("it must panic");
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_string(),
        _ => "the panic has no text".to_string(),
    }
}
