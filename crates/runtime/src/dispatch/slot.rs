//! The dispatch loop of a slot: fetch, process, repeat. Each slot has its own fetch parked in the store, so a slot that processes a
//! turn or an activity does not delay the others.

use super::backoff::backoff;
use super::catch_panic::catch_panic;
use super::unregistered_pause::UnregisteredPause;
use crate::core::Core;
use crate::observability::Stopwatch;
use outlast_provider::ProviderError;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A queue of the store: turns or activities.
pub(crate) trait Queue: Send + Sync + 'static {
    /// A leased turn or activity.
    type Item: Send;

    /// The value of the log field `queue`.
    fn name(&self) -> &'static str;
    /// Notified when a commit of this process has put an item into the queue.
    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify;
    /// The pauses for items whose handler is not registered on this node.
    fn unregistered_pause<'a>(&self, core: &'a Core) -> &'a UnregisteredPause;
    /// Leases the next item.
    fn fetch(
        &self,
        core: &Core,
        slot: usize,
    ) -> impl Future<Output = Result<Fetched<Self::Item>, ProviderError>> + Send;
    /// Runs the item and starts its commit, or gives it back.
    fn process(&self, core: &Arc<Core>, slot: usize, item: Self::Item) -> impl Future<Output = ()> + Send;
}

/// The result of a fetch.
pub(crate) enum Fetched<T> {
    Item(T),
    Nothing,
    /// The request went out of date while it was parked: the slot fetches again with a new one.
    Outdated,
}

/// Starts the slots of a queue.
pub(crate) fn run_slots<Q: Queue>(core: &Arc<Core>, queue: Q, slots: usize) {
    let queue = Arc::new(queue);
    for slot in 0..slots {
        let (core_of_task, queue) = (Arc::clone(core), Arc::clone(&queue));
        core.spawn_slot(async move { run(core_of_task, queue, slot).await });
    }
}

async fn run<Q: Queue>(core: Arc<Core>, queue: Arc<Q>, slot: usize) {
    let mut failures = 0;
    while !core.stopping.is_cancelled() {
        let done = catch_panic(fetch_and_process(&core, queue.as_ref(), slot)).await;
        let pause = match done {
            Ok(Ok(pause)) => {
                failures = 0;
                pause
            }
            Ok(Err(error)) => {
                failures += 1;
                tracing::warn!(target: "duroxide::runtime", queue = queue.name(), %error, failures, "fetch failed");
                fetch_backoff(&core, &error, failures)
            }
            Err(panic) => {
                failures += 1;
                recover_from_panic(&core, queue.name(), panic).await;
                backoff(SHORT_PAUSE, LONG_PAUSE, failures, core.options.entropy.as_ref())
            }
        };
        if !pause.is_zero() {
            pause_unless_stopping(&core, pause).await;
        }
    }
}

const SHORT_PAUSE: Duration = Duration::from_millis(100);
const LONG_PAUSE: Duration = Duration::from_secs(3);

fn fetch_backoff(core: &Core, error: &ProviderError, failures: u32) -> Duration {
    if error.is_retryable() {
        backoff(SHORT_PAUSE * 2, LONG_PAUSE, failures, core.options.entropy.as_ref())
    } else {
        SHORT_PAUSE
    }
}

async fn pause_unless_stopping(core: &Core, pause: Duration) {
    tokio::select! {
        biased;
        () = core.stopping.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// Fetches one item and processes it. Returns the pause before the next fetch.
async fn fetch_and_process<Q: Queue>(
    core: &Arc<Core>,
    queue: &Q,
    slot: usize,
) -> Result<Duration, ProviderError> {
    if let Some(pause) = queue.unregistered_pause(core).remaining() {
        return Ok(pause);
    }
    // Registered before the fetch, so that a commit during the fetch ends the pause below.
    let committed = queue.waiting(core).notified();
    let since = Stopwatch::start();
    let fetched = tokio::select! {
        biased;
        () = core.stopping.cancelled() => return Ok(Duration::ZERO),
        fetched = queue.fetch(core, slot) => fetched?,
        () = queue.unregistered_pause(core).next_pause() => return Ok(Duration::ZERO),
    };
    match fetched {
        Fetched::Item(item) => queue.process(core, slot, item).await,
        Fetched::Outdated => {}
        Fetched::Nothing => {
            let pause = core.options.dispatcher_min_poll_interval.saturating_sub(since.elapsed());
            tokio::select! {
                biased;
                () = core.stopping.cancelled() => {}
                () = committed => {}
                // Yields to other tasks even if the pause is zero.
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
    Ok(Duration::ZERO)
}

/// Hands a commit off to a separate task, so that the slot can fetch again. The concurrency options limit how many turns and
/// activities run at a time, not how many commits are in progress: commits in progress share syncs of the store.
///
/// `bytes` is the size of the commit's payloads. The commit is boxed because its future has many kilobytes and spawning a task moves it several times.
pub(super) async fn hand_off(
    core: &Arc<Core>,
    queue: &'static str,
    bytes: usize,
    commit: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    // The semaphore is never closed, so this is never an error.
    let permit = core.commit_permits(bytes).acquire_owned().await;
    let core_of_task = Arc::clone(core);
    core.spawn_slot(async move {
        if let Err(panic) = catch_panic(commit).await {
            recover_from_panic(&core_of_task, queue, panic).await;
        }
        drop(permit);
    });
    // tokio queues a new task on the thread that spawned it. The next turn may block that thread, so the commit starts first.
    tokio::task::yield_now().await;
}

/// Logs a panic of a dispatcher and gives back the leases that the panic left unsettled.
async fn recover_from_panic(core: &Core, queue: &'static str, panic: String) {
    let panic = crate::observe::truncated(panic);
    tracing::error!(target: "duroxide::runtime", queue, panic, "a dispatcher panicked; it gives its leases back and continues");
    // This counts as a delivery, so that an item which panics the dispatcher every time is poisoned.
    for (kind, token) in core.leases.take_dropped() {
        core.give_back(kind, &token, Some(SHORT_PAUSE), false).await;
    }
}
