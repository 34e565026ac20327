//! Sends calls and fetches to the writer, and runs the writer: on its thread, or on the calling task.

use crate::command::{CallInfo, Command, Handle, Inline};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::Result;
use crate::large_requests::{EndedTransaction, LARGE_BYTES, LargeRequests, LargeTurns};
use crate::leased::{Guarded, LeaseAnswer, Leases};
use crate::park::{Ask, Fetch};
use crate::threads::{Threads, pause, permits_for};
use crate::url::Location;
use crate::writer::{Apply, PendingCall, Writer};
use crate::{SqliteError, SqliteOptions, SqliteProvider};
use outlast_provider::{ProviderError, saturating_ms};
use outlast_provider_kit::fetch::answer_within;
use std::borrow::Borrow;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The result of a provider call.
pub(crate) type Answer<T> = std::result::Result<T, ProviderError>;

/// Where the store's operations run.
pub(crate) enum Executor {
    /// On the threads of the store.
    Threaded(Threads),
    /// On the calling task.
    Inline(Arc<Inline>),
}

impl Executor {
    /// Opens the store.
    pub(crate) async fn start(
        location: &Location,
        options: &SqliteOptions,
        counters: &Arc<Counters>,
    ) -> Result<Self> {
        match options.inline {
            true => {
                let writer = Writer::open(location.clone(), options.clone(), Arc::clone(counters))?;
                Ok(Self::Inline(Arc::new(Inline::new(writer))))
            }
            false => {
                let threads = Threads::start(location.clone(), options.clone(), Arc::clone(counters));
                Ok(Self::Threaded(threads.await?))
            }
        }
    }

    fn handle(&self) -> Handle {
        match self {
            Self::Threaded(threads) => Handle::Threaded(threads.commands.clone()),
            Self::Inline(inline) => Handle::Inline(Arc::downgrade(inline)),
        }
    }

    pub(crate) fn submit(&self, command: Command) {
        match self {
            // Without a writer the command is dropped, and its caller gets the error `Closed`.
            Self::Threaded(threads) => drop(threads.commands.send(command)),
            Self::Inline(_) => self.handle().submit(command),
        }
    }

    /// Waits for the permit to send a call with this many bytes to the writer. Inline mode needs no permit: the caller itself
    /// runs the writer.
    async fn permit(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let Self::Threaded(threads) = self else { return None };
        let permits = if bytes >= LARGE_BYTES { &threads.large_call_permits } else { &threads.call_permits };
        // The store never closes the semaphore.
        Arc::clone(permits).acquire_many_owned(permits_for(bytes)).await.ok()
    }
}

impl SqliteProvider {
    /// The free permits for small and for large calls, for tests.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn free_room(&self) -> Option<[usize; 2]> {
        match &self.executor {
            Executor::Threaded(threads) => Some([
                threads.call_permits.available_permits(),
                threads.large_call_permits.available_permits(),
            ]),
            Executor::Inline(_) => None,
        }
    }

    /// Applies a call in the writer's next transaction; returns after the commit.
    pub(crate) async fn write<A, B, T>(&self, info: CallInfo, args: A, apply: Apply<B, T>) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        self.write_then(info, args, apply, |_, _| {}).await
    }

    /// Applies a call in the writer's next transaction; returns after the commit. `on_commit` runs after the commit even if this
    /// future was dropped.
    pub(crate) async fn write_then<A, B, T>(
        &self,
        info: CallInfo,
        args: A,
        apply: Apply<B, T>,
        on_commit: impl FnOnce(&B, &T) + Send + 'static,
    ) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        let operation = info.operation;
        let permit = self.executor.permit(info.bytes).await;
        let (call, answer) = PendingCall::new(info, args, apply, on_commit, permit);
        self.executor.submit(Command::Call(Box::new(call)));
        Ok(answer.await.unwrap_or_else(|_| Err(SqliteError::Closed.classified(operation)))?)
    }

    /// Sends a fetch to the writer and waits for its leases. If this future is dropped, the leases are given back.
    pub(crate) async fn fetch<A: Ask>(
        &self,
        ask: A,
        poll_timeout: Duration,
        command: impl FnOnce(Fetch<A>, Option<OwnedSemaphorePermit>) -> Command + Send,
    ) -> Answer<Option<A::Leases>> {
        let (fetch, mut answer) = Fetch::<A>::new(ask, poll_timeout);
        let permit = self.executor.permit(0).await;
        self.executor.submit(command(fetch, permit));
        let answered = match &self.executor {
            Executor::Inline(inline) if !poll_timeout.is_zero() => {
                self.poll_inline::<A::Leases>(inline, &mut answer, poll_timeout).await
            }
            Executor::Threaded(_) | Executor::Inline(_) => answer_within(answer, poll_timeout).await,
        };
        match answered {
            Ok(None) => Ok(None),
            Ok(Some(leases)) => Ok(leases?.and_then(Guarded::take)),
            Err(_) => Err(SqliteError::Closed.during(A::OPERATION)),
        }
    }

    /// Without a writer thread, the waiting task itself polls the parked fetches when a poll is due. `None` after the timeout.
    async fn poll_inline<L: Leases>(
        &self,
        inline: &Inline,
        answer: &mut oneshot::Receiver<LeaseAnswer<L>>,
        poll_timeout: Duration,
    ) -> std::result::Result<Option<LeaseAnswer<L>>, oneshot::error::RecvError> {
        let give_up_at = self.options.clock.now_ms().saturating_add(saturating_ms(poll_timeout));
        loop {
            let mut changed = pin!(inline.changed.notified());
            changed.as_mut().enable();
            let now = self.options.clock.now_ms();
            let wake_at = inline.writer().wake_at().unwrap_or(u64::MAX);
            if wake_at <= now {
                inline.writer().process(Vec::new(), true, &self.executor.handle());
            }
            let pause = Duration::from_millis(wake_at.min(give_up_at).saturating_sub(now));
            let mut answered = pin!(&mut *answer);
            let answer_or_change = poll_fn(|context| match answered.as_mut().poll(context) {
                Poll::Ready(leases) => Poll::Ready(Some(leases)),
                Poll::Pending => changed.as_mut().poll(context).map(|()| None),
            });
            match tokio::time::timeout(pause, answer_or_change).await {
                Ok(Some(leases)) => return leases.map(Some),
                Err(_) if self.options.clock.now_ms() >= give_up_at => return Ok(None),
                Ok(None) | Err(_) => {}
            }
        }
    }
}

/// The number of calls that share one transaction at most, so that no caller waits for an endless batch.
const MAX_BATCH: usize = 512;

/// How long the writer does not take the database lock after it saw a commit of another process.
const YIELD_TO_OTHERS: Duration = Duration::from_micros(400);

/// The loop of the writer's thread: takes commands and runs transactions until the store is closed. The loop never delays a call
/// to fill a batch, and it polls the parked fetches when an item becomes available by itself.
pub(crate) struct WriterLoop {
    writer: Writer,
    commands: Receiver<Command>,
    handle: Handle,
    large: LargeRequests,
    /// Whether the command to stop came, so that the current step is the last one. A panic must not lose the command: the owner
    /// of the store waits for the end of this thread.
    is_stopped: bool,
}

impl WriterLoop {
    pub(crate) fn new(writer: Writer, commands: Receiver<Command>, handle: Handle) -> Self {
        Self { writer, commands, handle, large: LargeRequests::new(), is_stopped: false }
    }

    pub(crate) fn run(mut self) {
        while !self.is_stopped {
            // The writer contains a panic inside a transaction; this contains all other panics.
            if contain(|| self.step()).is_none() {
                contain::report("writer", None);
                self.writer.on_panic();
            }
        }
    }

    /// Runs one transaction. After the command to stop, the waiting large calls are applied too.
    fn step(&mut self) {
        match self.next() {
            Next::Small(first) => self.small_step(first),
            Next::Large => self.large_step(),
            Next::Closed => self.is_stopped = true,
        }
        if self.is_stopped {
            let left = self.large.take_all();
            if !left.is_empty() {
                self.writer.process(left, false, &self.handle);
            }
        } else if self.writer.saw_foreign_commit {
            self.writer.counters.yields_to_processes.add(1);
            pause(YIELD_TO_OTHERS);
        }
    }

    /// Runs a transaction with small requests.
    fn small_step(&mut self, first: Command) {
        self.is_stopped |= matches!(first, Command::Stop);
        let Some(first) = self.large.keep_if_large(first) else { return };
        let mut taken = 1;
        let begun = self.writer.now();
        *self.writer.large_turns() = self.large.small_begins();
        // A busy writer never reaches the wait in `next`, so it checks the time here.
        let is_due = self.writer.wake_at().is_some_and(|at| at <= begun);
        let mut more = || {
            let mut arrived = Vec::new();
            while taken < MAX_BATCH
                && let Ok(command) = self.commands.try_recv()
            {
                self.is_stopped |= matches!(command, Command::Stop);
                taken += 1;
                arrived.extend(self.large.keep_if_large(command));
            }
            arrived
        };
        self.writer.process_with(vec![first], is_due, &self.handle, &mut more);
        self.large.small_ended(ended(&mut self.writer, begun));
    }

    /// Polls the parked fetches.
    fn poll_parked(&mut self) {
        let begun = self.writer.now();
        *self.writer.large_turns() = self.large.small_begins();
        self.writer.process(Vec::new(), true, &self.handle);
        self.large.small_ended(ended(&mut self.writer, begun));
    }

    /// Runs a transaction with large requests.
    fn large_step(&mut self) {
        let begun = self.writer.now();
        let beside_small = self.large.saw_small();
        let most_bytes = self.large.step_bytes();
        let (calls, is_turn_due) = self.large.take();
        *self.writer.large_turns() = LargeTurns::One { most_bytes };
        self.writer.process(calls, is_turn_due, &self.handle);
        if beside_small {
            self.writer.connection.checkpoint();
        }
        self.large.large_ended(ended(&mut self.writer, begun), is_turn_due);
    }

    /// Waits for the next step. Polls of the parked fetches that are due meanwhile are made here.
    fn next(&mut self) -> Next {
        // Longer than a tick of the clock of a file system: two writes within one tick have the same time.
        const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
        let poll_interval = self.writer.options.foreign_poll_interval.max(SHORTEST_PAUSE);
        // `next` returns with every request, so no request has come since this time.
        let idle_from = self.writer.now();
        loop {
            let now = self.writer.now();
            let until_large = self.large.due_in(now);
            let is_large_due = until_large.is_some_and(|until| until.is_zero());
            if is_large_due && !self.large.was_last() {
                return Next::Large;
            }
            if let Ok(command) = self.commands.try_recv() {
                return Next::Small(command);
            }
            if is_large_due {
                return Next::Large;
            }
            let idle = Duration::from_millis(now.saturating_sub(idle_from));
            let until_pause_ends =
                until_large.map(|until| until.min(self.large.idle_limit().saturating_sub(idle)));
            let until_wake = match self.writer.wake_at() {
                None => None,
                Some(wake_at) => {
                    let now = self.writer.now();
                    if now >= wake_at {
                        self.poll_parked();
                        continue;
                    }
                    Some(Duration::from_millis(wake_at - now).min(poll_interval))
                }
            };
            let received = match until_wake.into_iter().chain(until_pause_ends).min() {
                None => self.commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(patience) => self.commands.recv_timeout(patience),
            };
            match received {
                Ok(command) => return Next::Small(command),
                Err(RecvTimeoutError::Disconnected) => return Next::Closed,
                Err(RecvTimeoutError::Timeout) => {
                    let has_pause_ended =
                        until_pause_ends.is_some_and(|pause| until_wake.is_none_or(|wake| pause <= wake));
                    if has_pause_ended {
                        self.large.end_pause();
                    } else if self.writer.has_foreign_commit() {
                        self.poll_parked();
                    }
                }
            }
        }
    }
}

/// The transaction that ended last.
fn ended(writer: &mut Writer, begun_at: u64) -> EndedTransaction {
    EndedTransaction {
        begun_at,
        ended_at: writer.now(),
        large_turns: *writer.large_turns(),
        is_fetch_urgent: writer.has_fetch_that_does_not_park(),
    }
}

/// The next step of the writer.
enum Next {
    /// A transaction whose first command is this one.
    Small(Command),
    /// A transaction with large requests.
    Large,
    /// The end: all senders of commands were dropped.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::ActivityAsk;
    use crate::large_requests::tests::{call, ended};
    use outlast_provider::{Clock, TagFilter};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc;

    /// A clock on which every reading takes 50 ms.
    struct SteppingClock(AtomicU64);

    impl Clock for SteppingClock {
        fn now_ms(&self) -> u64 {
            self.0.fetch_add(50, Ordering::Relaxed)
        }
    }

    #[test]
    fn pause_of_large_requests_ends_on_an_idle_store_although_a_fetch_is_parked() {
        let clock = Arc::new(SteppingClock(AtomicU64::new(10_000)));
        let options = SqliteOptions {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            foreign_poll_interval: Duration::ZERO,
            ..SqliteOptions::default()
        };
        let writer = Writer::open(Location::Memory, options, Arc::default()).unwrap();
        let (sender, commands) = mpsc::channel();
        let mut writer_loop = WriterLoop::new(writer, commands, Handle::Threaded(sender));
        let ask = ActivityAsk { max_items: 1, lock_ms: 1_000, session: None, tags: TagFilter::DefaultOnly };
        let (fetch, _answer) = Fetch::<ActivityAsk>::new(ask, Duration::from_secs(600));
        writer_loop.small_step(Command::FetchActivities(fetch, None));
        // A large transaction took one second beside small calls: large requests pause for five seconds, or until no request
        // came for one second.
        writer_loop.large.keep_if_large(call(1));
        let ended_at = clock.now_ms();
        writer_loop.large.large_ended(ended(ended_at - 1_000, ended_at), false);
        writer_loop.large.keep_if_large(call(LARGE_BYTES));
        assert!(matches!(writer_loop.next(), Next::Large));
        let paused = clock.now_ms() - ended_at;
        assert!((1_000..2_000).contains(&paused), "{paused} ms");
        assert!(writer_loop.writer.wake_at().is_some(), "the fetch is still parked");
    }
}
