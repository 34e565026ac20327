//! Runs a future under a paused clock.

/// Runs a future on this thread. The clock jumps to the next timer as soon as every task waits, so the order of all events
/// follows from the code and its seeds.
#[allow(clippy::expect_used, reason = "a tokio runtime without I/O needs no resource that could be missing")]
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime can be built");
    runtime.block_on(future)
}
