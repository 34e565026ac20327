//! Tokio runtimes whose clock is paused.

/// A tokio runtime on this thread. Its clock jumps to the next timer as soon as every task waits, so the order of all events follows
/// from the code.
#[allow(clippy::expect_used, reason = "a tokio runtime without I/O needs no resource that could be missing")]
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().expect("a runtime can be built")
}
