//! The dispatch loop of a slot: fetch, wait for a permit, process, repeat. Each slot has its own fetch parked in the store, so a
//! slot that processes a turn or an activity does not delay the others.

use super::backoff::backoff;
use super::catch_panic::catch_panic;
use super::further_slots::{QUICK_FETCH, QUICK_FETCHES};
use super::lease::{Kind, Lease};
use super::start::{Start, Started, pause_after_give_back, start};
use super::unregistered_pause::UnregisteredPause;
use crate::core::Core;
use crate::observability::Stopwatch;
use outlast_model::defect::{self, Defect};
use outlast_provider::ProviderError;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// A queue of the store: turns or activities.
pub(crate) trait Queue: Send + Sync + 'static {
    /// A leased turn or activity.
    type Item: Send;

    /// The kind of the leases of this queue.
    fn kind(&self) -> Kind;
    /// The value of the log field `queue`.
    fn name(&self) -> &'static str;
    /// Notified when a commit of this process has put an item into the queue.
    fn waiting<'a>(&self, core: &'a Core) -> &'a Notify;
    /// The pauses for items whose handler is not registered on this node.
    fn unregistered_pause<'a>(&self, core: &'a Core) -> &'a UnregisteredPause;
    /// Leases the next item. A slot beyond one per permit leases no activity of a session.
    fn fetch(
        &self,
        core: &Core,
        slot: usize,
    ) -> impl Future<Output = Result<Fetched<Self::Item>, ProviderError>> + Send;
    /// Holds the lease of an item that was just fetched, and returns it with the number of deliveries.
    fn hold(&self, core: &Core, item: &mut Self::Item) -> (Lease, u32);
    /// Runs the item and starts its commit, or gives it back.
    fn process(
        &self,
        core: &Arc<Core>,
        item: Self::Item,
        lease: Lease,
        started: Started<'_>,
    ) -> impl Future<Output = ()> + Send;
}

/// The result of a fetch.
pub(crate) enum Fetched<T> {
    Item(T),
    Nothing,
    /// The request went out of date while it was parked: the slot fetches again with a new one.
    Outdated,
}

/// Starts the slots of a queue: one per permit.
pub(crate) fn run_slots<Q: Queue>(core: &Arc<Core>, queue: Q, permits: usize) {
    spawn_slots(core, &Arc::new(queue), 0..permits);
}

fn spawn_slots<Q: Queue>(core: &Arc<Core>, queue: &Arc<Q>, slots: Range<usize>) {
    for number in slots {
        let slot = Slot { core: Arc::clone(core), queue: Arc::clone(queue), number };
        // The type of a spawned future must not contain itself: a slot starts further slots.
        let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(slot.run());
        core.spawn_slot(task);
    }
}

struct Slot<Q: Queue> {
    core: Arc<Core>,
    queue: Arc<Q>,
    number: usize,
}

/// How a slot goes on after a fetch.
struct Next {
    pause: Duration,
    /// Whether the fetch returned an item at once and the item was started.
    quick: bool,
    /// Whether a further slot ends: there is nothing to lease ahead.
    end: bool,
}

impl Next {
    fn after(pause: Duration) -> Self {
        Self { pause, quick: false, end: false }
    }
}

impl<Q: Queue> Slot<Q> {
    async fn run(self) {
        let core = &self.core;
        let (mut failures, mut quick_fetches) = (0, 0);
        while !core.stopping.is_cancelled() && !self.is_needless() {
            let done = catch_panic(self.fetch_and_process(quick_fetches)).await;
            let pause = match done {
                Ok(Ok(next)) => {
                    failures = 0;
                    quick_fetches = if next.quick { quick_fetches + 1 } else { 0 };
                    if next.end && !self.is_permanent() {
                        break;
                    }
                    next.pause
                }
                Ok(Err(_)) if defect::is_on(Defect::SlotEndsAfterError) => break,
                Ok(Err(error)) => {
                    failures += 1;
                    tracing::warn!(target: "duroxide::runtime", queue = self.queue.name(), %error, failures, "fetch failed");
                    fetch_backoff(core, &error, failures)
                }
                Err(panic) => {
                    failures += 1;
                    recover_from_panic(core, self.queue.name(), panic).await;
                    backoff(SHORT_PAUSE, LONG_PAUSE, failures, core.options.entropy.as_ref())
                }
            };
            if !pause.is_zero() {
                pause_unless_stopping(core, pause).await;
            }
        }
    }

    fn is_permanent(&self) -> bool {
        self.core.further_slots(self.queue.kind()).is_permanent(self.number)
    }

    /// Whether this is a further slot and no item may be leased ahead.
    fn is_needless(&self) -> bool {
        let slots = self.core.further_slots(self.queue.kind());
        !slots.is_permanent(self.number) && (slots.is_excess(self.number) || self.core.gate.is_closed())
    }

    /// Fetches one item and processes it.
    async fn fetch_and_process(&self, quick_fetches: u32) -> Result<Next, ProviderError> {
        let (core, queue) = (&self.core, self.queue.as_ref());
        if let Some(pause) = queue.unregistered_pause(core).remaining() {
            return Ok(Next::after(pause));
        }
        // Registered before the fetch, so that a commit during the fetch ends the pause below.
        let committed = queue.waiting(core).notified();
        let since = Stopwatch::start();
        let fetched = tokio::select! {
            biased;
            () = core.stopping.cancelled() => return Ok(Next::after(Duration::ZERO)),
            fetched = queue.fetch(core, self.number) => fetched?,
            () = queue.unregistered_pause(core).next_pause() => return Ok(Next::after(Duration::ZERO)),
        };
        match fetched {
            Fetched::Item(item) => {
                let quick = since.elapsed() < QUICK_FETCH;
                if quick && quick_fetches + 1 >= QUICK_FETCHES && !core.gate.is_closed() {
                    spawn_slots(core, &self.queue, core.further_slots(queue.kind()).grow());
                }
                let started = self.start_and_process(item).await;
                return Ok(Next { pause: Duration::ZERO, quick: quick && started, end: !started });
            }
            Fetched::Outdated => {}
            Fetched::Nothing if !self.is_permanent() => {
                return Ok(Next { pause: Duration::ZERO, quick: false, end: true });
            }
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
        Ok(Next::after(Duration::ZERO))
    }

    /// Processes a leased item as soon as it may start. Returns `false` if the item was given back instead.
    async fn start_and_process(&self, mut item: Q::Item) -> bool {
        let (core, queue) = (&self.core, self.queue.as_ref());
        let (kind, fetched) = (queue.kind(), Stopwatch::start());
        let (lease, attempt_count) = queue.hold(core, &mut item);
        match start(core, kind, self.number, &lease, attempt_count, fetched).await {
            Start::Now(started) => {
                queue.process(core, item, lease, started).await;
                true
            }
            Start::GiveBack(_) if defect::is_on(Defect::UnstartedStaysLeased) => {
                std::mem::forget(lease);
                false
            }
            Start::GiveBack(unstarted) => {
                drop(item);
                if lease.lost().is_cancelled() {
                    lease.settle();
                } else {
                    lease.give_back(core, None, true).await;
                }
                drop(unstarted);
                if self.is_permanent() {
                    pause_after_give_back(core, kind).await;
                }
                false
            }
        }
    }
}

impl<Q: Queue> Drop for Slot<Q> {
    fn drop(&mut self) {
        if !self.is_permanent() {
            self.core.further_slots(self.queue.kind()).ended();
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

/// Runs a commit in a task of its own, so that the slot can fetch again. The concurrency options limit how many turns and
/// activities run at a time, not how many commits are in progress: commits in progress share syncs of the store.
///
/// `bytes` is the size of the commit's payloads. The commit is boxed because its future has many kilobytes and spawning a task moves it several times.
pub(super) async fn commit_in_task(
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
