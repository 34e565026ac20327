//! Executes calls, reads and fetches: on the writer and its threads, or on the calling task.

use crate::command::{Apply, CallInfo, Command, Health, PendingCall};
use crate::contain::{self, contain};
use crate::counters::Counters;
use crate::db::{Db, Result};
use crate::handle::{Handle, Inline};
use crate::large_requests::LARGE_BYTES;
use crate::leased::{Guarded, LeaseAnswer, Leases};
use crate::park::{Ask, Fetch};
use crate::threads::{Threads, permits_for};
use crate::transaction::Transaction;
use crate::url::Location;
use crate::writer::Writer;
use crate::{SqliteError, SqliteOptions, SqliteProvider};
use outlast_provider::{ProviderError, saturating_ms};
use outlast_provider_kit::fetch::answer_within;
use std::borrow::Borrow;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// The result of a provider call.
pub(crate) type Answer<T> = std::result::Result<T, ProviderError>;

/// Reads on a connection.
type Read<B, T> = fn(&Db, &B) -> Result<T>;

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

    fn submit(&self, command: Command) {
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

    /// Runs a read on a reader's connection, or on the writer's if the store has no readers.
    pub(crate) async fn read_with<A, B, T>(
        &self,
        operation: &'static str,
        args: A,
        read: Read<B, T>,
    ) -> Answer<T>
    where
        A: Borrow<B> + Send + 'static,
        B: ?Sized + 'static,
        T: Send + 'static,
    {
        match &self.executor {
            Executor::Threaded(Threads { reads: Some(reads), read_permits, .. }) => {
                // The store never closes the semaphore.
                let permit = Arc::clone(read_permits).acquire_owned().await.ok();
                let (reply, answer) = oneshot::channel();
                let job = move |db: Result<&Db>| {
                    let (done, health) = run_contained(operation, || read(db?, args.borrow()));
                    drop((reply.send(done), permit));
                    health
                };
                if reads.send(Box::new(job)).is_err() {
                    return Err(SqliteError::Closed.during(operation));
                }
                let read = answer.await.unwrap_or(Err(SqliteError::Closed));
                read.map_err(|error| error.during(operation))
            }
            Executor::Threaded(_) => {
                let apply =
                    |tx: &mut Transaction<'_>, (args, read): &(A, Read<B, T>)| read(tx.db, args.borrow());
                self.write(CallInfo::of(operation), (args, read), apply).await
            }
            Executor::Inline(inline) => {
                let done = inline.writer().read(operation, |db| read(db, args.borrow()));
                done.map_err(|error| error.during(operation))
            }
        }
    }

    /// Runs a job on a thread of its own. The job opens its own connection.
    pub(crate) async fn run_on_own_thread<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Executor::Threaded(threads) = &self.executor else { return run_contained("maintenance", job).0 };
        let (reply, answer) = oneshot::channel();
        threads.run_on_own_thread(move || drop(reply.send(run_contained("maintenance", job).0)))?;
        answer.await.unwrap_or(Err(SqliteError::Closed))
    }

    /// Runs a job on the writer's connection, between two transactions.
    pub(crate) async fn run_between_transactions<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = move |db: &Db| {
            let (done, health) = run_contained("maintenance", || job(db));
            drop(reply.send(done));
            health
        };
        self.executor.submit(Command::BetweenTransactions(Box::new(job)));
        answer.await.unwrap_or(Err(SqliteError::Closed))
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

/// Runs a job and says whether its connection is still usable; a panic becomes an error.
fn run_contained<T>(operation: &'static str, job: impl FnOnce() -> Result<T>) -> (Result<T>, Health) {
    match contain(job) {
        Some(done) => (done, Health::Good),
        None => {
            contain::report(operation, None);
            (Err(SqliteError::Panicked { operation, instance: None }), Health::Panicked)
        }
    }
}
