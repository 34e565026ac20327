//! The requests to the writer, and the handle that sends them.

use crate::SqliteError;
use crate::activity::ActivityAsk;
use crate::contain::Health;
use crate::db::{Db, Result};
use crate::fetch::TurnAsk;
use crate::leased::{self, LeaseKind};
use crate::park::Fetch;
use crate::transaction::Transaction;
use crate::writer::Writer;
use outlast_provider::ClassifiedError;
use outlast_provider_kit::MessageRow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

/// One request to the writer.
pub(crate) enum Command {
    /// A call that is applied in a transaction and answered after its commit.
    Call(Box<dyn Call>),
    /// A fetch of a turn, with the permit under which it was sent.
    FetchTurn(Fetch<TurnAsk>, Option<OwnedSemaphorePermit>),
    /// A fetch of activities, with the permit under which it was sent.
    FetchActivities(Fetch<ActivityAsk>, Option<OwnedSemaphorePermit>),
    /// Gives back a lease whose caller was dropped before it received the lease.
    Release(LeaseKind, String),
    /// A job for the writer's connection that must not run inside a transaction.
    BetweenTransactions(Job),
    /// The provider is being dropped.
    Stop,
}

/// A job for the writer's connection.
pub(crate) type Job = Box<dyn FnOnce(&Db) -> Health + Send>;

/// The result of applying a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    Done,
    /// The call is invalid, or its lease is lost.
    Refused,
    /// The database reported an error.
    Failed,
    /// The call panicked.
    Panicked,
}

/// A call: applied inside a transaction, again if that transaction is rolled back, and answered after the commit.
pub(crate) trait Call: Send {
    fn apply(&mut self, tx: &mut Transaction<'_>) -> Applied;
    /// The number of bytes that the call stores or deletes.
    fn bytes(&self) -> usize;
    /// Whether the call panicked when it was applied. The writer does not apply such a call again.
    fn has_panicked(&self) -> bool;
    /// Sends the result to the caller. With a `fault` the transaction did not commit, and the fault replaces the result.
    fn answer(self: Box<Self>, fault: Option<&SqliteError>);
}

/// Applies a call inside a transaction.
pub(crate) type Apply<B, T> = fn(&mut Transaction<'_>, &B) -> Result<T>;

/// A call that the writer has not answered yet.
pub(crate) struct PendingCall<A, B: ?Sized, T, N> {
    pub(crate) info: CallInfo,
    pub(crate) args: A,
    /// May run twice, because it only borrows the arguments.
    pub(crate) apply: Apply<B, T>,
    /// Runs on the writer after the commit, also if the caller was dropped.
    pub(crate) on_commit: N,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) reply: oneshot::Sender<CallAnswer<T>>,
    /// The permit under which the call was sent, released with the answer.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

type CallAnswer<T> = std::result::Result<T, ClassifiedError>;

impl<A, B: ?Sized, T, N: FnOnce(&B, &T)> PendingCall<A, B, T, N> {
    /// A call, and the receiver of its answer.
    pub(crate) fn new(
        info: CallInfo,
        args: A,
        apply: Apply<B, T>,
        on_commit: N,
        permit: Option<OwnedSemaphorePermit>,
    ) -> (Self, oneshot::Receiver<CallAnswer<T>>) {
        let (reply, answer) = oneshot::channel();
        (Self { info, args, apply, on_commit, outcome: None, reply, permit }, answer)
    }
}

/// The operation of a call and its instance, for errors, and the bytes that it sends to the writer.
pub(crate) struct CallInfo {
    pub(crate) operation: &'static str,
    pub(crate) instance: Option<Box<str>>,
    pub(crate) bytes: usize,
}

impl CallInfo {
    pub(crate) fn of(operation: &'static str) -> Self {
        Self { operation, instance: None, bytes: 0 }
    }

    pub(crate) fn instance(self, instance: &str) -> Self {
        Self { instance: Some(instance.into()), ..self }
    }

    pub(crate) fn bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// A call that stores a message.
    pub(crate) fn message(operation: &'static str, row: &MessageRow) -> Self {
        Self::of(operation).instance(&row.instance_id).bytes(row.work_item.len())
    }

    /// A call of the holder of a turn's lease.
    pub(crate) fn turn(operation: &'static str, token: &str) -> Self {
        match leased::instance_of(token) {
            Some(instance) => Self::of(operation).instance(instance),
            None => Self::of(operation),
        }
    }
}

/// A writer without a thread.
pub(crate) struct Inline {
    writer: Mutex<Writer>,
    /// Wakes the tasks of parked fetches, because the next poll may be due earlier.
    pub(crate) changed: Notify,
    /// The time at which a task last checked for commits of other processes.
    looked_at: AtomicU64,
}

impl Inline {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer: Mutex::new(writer), changed: Notify::new(), looked_at: AtomicU64::new(0) }
    }

    /// Checks for commits of other processes, unless a task did so within the last `interval_ms`. If there is one, the next poll
    /// of the parked fetches is due at once.
    pub(crate) fn check_for_foreign_commits(&self, now: u64, interval_ms: u64) {
        if self.looked_at.load(Relaxed).abs_diff(now) >= interval_ms {
            self.looked_at.store(now, Relaxed);
            self.writer().has_foreign_commit();
        }
    }

    /// The writer contains its panics, so none poisons the lock. A poisoned lock would still be usable.
    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends commands to the writer's thread, or runs the writer on the calling task.
#[derive(Clone)]
pub(crate) enum Handle {
    Threaded(Sender<Command>),
    Inline(Weak<Inline>),
}

impl Handle {
    /// Without a writer the command is dropped, and its caller gets the error `Closed`.
    pub(crate) fn submit(&self, command: Command) {
        match self {
            Self::Threaded(sender) => drop(sender.send(command)),
            Self::Inline(inline) => {
                if let Some(inline) = inline.upgrade() {
                    inline.writer().process(vec![command], false, self);
                    inline.changed.notify_waiters();
                }
            }
        }
    }

    /// Gives a lease back.
    pub(crate) fn release(&self, kind: LeaseKind, token: String) {
        self.submit(Command::Release(kind, token));
    }
}
