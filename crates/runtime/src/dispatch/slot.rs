//! The one loop. Each permit is a slot with a fetch of its own parked in the store, so that one that works holds up no
//! other.

use super::aside::Aside;
use super::backoff::backoff;
use super::contain::contain;
use crate::core::Core;
use crate::observability::Stopwatch;
use outlast_provider::ProviderError;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// One of the two queues, as the loop sees it.
pub(crate) trait Queue: Send + Sync + 'static {
    /// A leased piece of work.
    type Item: Send;

    /// For logs.
    fn name(&self) -> &'static str;
    /// Tells that there may be work.
    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify;
    /// When to leave work to others.
    fn aside<'a>(&self, core: &'a Core) -> &'a Aside;
    /// Leases the next item. May return early, with nothing, when asking again could bring something else.
    fn fetch(
        &self,
        core: &Core,
        slot: usize,
    ) -> impl Future<Output = Result<Fetched<Self::Item>, ProviderError>> + Send;
    /// Works on it until it is committed or given back.
    fn process(&self, core: &Arc<Core>, slot: usize, item: Self::Item) -> impl Future<Output = ()> + Send;
}

/// What a fetch brought.
pub(crate) enum Fetched<T> {
    Item(T),
    Nothing,
    /// The question was out of date: ask again.
    AskAgain,
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
        let round = contain(round(&core, queue.as_ref(), slot)).await;
        let pause = match round {
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
                panicked(&core, queue.name(), panic).await;
                backoff(SHORT_PAUSE, LONG_PAUSE, failures, core.options.entropy.as_ref())
            }
        };
        if !pause.is_zero() {
            rest(&core, pause).await;
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

async fn rest(core: &Core, pause: Duration) {
    tokio::select! {
        biased;
        () = core.stopping.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
    }
}

/// One fetch and what follows from it; returns how long to pause.
async fn round<Q: Queue>(core: &Arc<Core>, queue: &Q, slot: usize) -> Result<Duration, ProviderError> {
    if let Some(courtesy) = queue.aside(core).remaining() {
        return Ok(courtesy);
    }
    // Before the fetch: what is committed while it looks must not be missed.
    let news = queue.waiting(core).notified();
    let since = Stopwatch::start();
    let fetched = tokio::select! {
        biased;
        () = core.stopping.cancelled() => return Ok(Duration::ZERO),
        fetched = queue.fetch(core, slot) => fetched?,
        () = queue.aside(core).begins() => return Ok(Duration::ZERO),
    };
    match fetched {
        Fetched::Item(item) => queue.process(core, slot, item).await,
        Fetched::AskAgain => {}
        Fetched::Nothing => {
            let pause = core.options.dispatcher_min_poll_interval.saturating_sub(since.elapsed());
            tokio::select! {
                biased;
                () = core.stopping.cancelled() => {}
                () = news => {}
                // Yields even if nothing is left of the pause.
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
    Ok(Duration::ZERO)
}

/// Lets a commit go its way, so that the slot that made it can go on: what is limited is how much runs at once, not how much
/// is on its way to the disk, where commits that wait share a sync.
///
/// The commit comes boxed: its future has many kilobytes, and starting a task moves it half a dozen times.
pub(super) async fn hand_off(
    core: &Arc<Core>,
    queue: &'static str,
    commit: Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    // Nobody closes it.
    let permit = Arc::clone(&core.commits).acquire_owned().await;
    let core_of_task = Arc::clone(core);
    core.spawn_slot(async move {
        if let Err(panic) = contain(commit).await {
            panicked(&core_of_task, queue, panic).await;
        }
        drop(permit);
    });
    // tokio keeps a new task for the thread that made it. The next turn may hold that for long, so the commit goes first.
    tokio::task::yield_now().await;
}

async fn panicked(core: &Core, queue: &'static str, panic: String) {
    let panic = crate::observe::shortened(panic);
    tracing::error!(target: "duroxide::runtime", queue, panic, "a dispatcher panicked; it goes on");
    give_back_dropped(core).await;
}

/// Gives back what a panic left behind. It counts as a delivery: work that panics the dispatcher must not do so for ever.
async fn give_back_dropped(core: &Core) {
    for (kind, token) in core.leases.take_dropped() {
        core.give_back(kind, &token, Some(SHORT_PAUSE), false).await;
    }
}
