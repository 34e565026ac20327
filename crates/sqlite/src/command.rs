//! The requests to the writer.

use crate::activity::ActivityAsk;
use crate::contain::{self, contain};
use crate::db::{Db, Result};
use crate::fetch::TurnAsk;
use crate::leased::LeaseKind;
use crate::park::Fetch;
use crate::transaction::Transaction;
use crate::{SqliteError, commit};
use outlast_provider::ClassifiedError;
use outlast_provider_kit::MessageRow;
use std::borrow::Borrow;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

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

/// Whether a connection can be used after a job ran on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// The job panicked, so the connection must be replaced.
    Panicked,
}

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

/// The operation of a call and its instance, for errors, and the bytes that it sends to the writer.
pub(crate) struct CallInfo {
    pub(crate) operation: &'static str,
    instance: Option<Box<str>>,
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
        match commit::instance_of(token) {
            Some(instance) => Self::of(operation).instance(instance),
            None => Self::of(operation),
        }
    }
}

/// Applies a call inside a transaction.
pub(crate) type Apply<B, T> = fn(&mut Transaction<'_>, &B) -> Result<T>;

/// A call that the writer has not answered yet.
pub(crate) struct PendingCall<A, B: ?Sized, T, N> {
    info: CallInfo,
    args: A,
    /// May run twice, because it only borrows the arguments.
    apply: Apply<B, T>,
    /// Runs on the writer after the commit, also if the caller was dropped.
    on_commit: N,
    outcome: Option<Result<T>>,
    reply: CallReply<T>,
    /// The permit under which the call was sent, released with the answer.
    permit: Option<OwnedSemaphorePermit>,
}

type CallReply<T> = oneshot::Sender<std::result::Result<T, ClassifiedError>>;

impl<A, B: ?Sized, T, N: FnOnce(&B, &T)> PendingCall<A, B, T, N> {
    /// A call, and the receiver of its answer.
    pub(crate) fn new(
        info: CallInfo,
        args: A,
        apply: Apply<B, T>,
        on_commit: N,
        permit: Option<OwnedSemaphorePermit>,
    ) -> (Self, oneshot::Receiver<std::result::Result<T, ClassifiedError>>) {
        let (reply, answer) = oneshot::channel();
        (Self { info, args, apply, on_commit, outcome: None, reply, permit }, answer)
    }
}

impl<A, B, T, N> Call for PendingCall<A, B, T, N>
where
    A: Borrow<B> + Send,
    B: ?Sized,
    T: Send,
    N: FnOnce(&B, &T) + Send,
{
    fn apply(&mut self, tx: &mut Transaction<'_>) -> Applied {
        let Some(outcome) = contain(|| (self.apply)(tx, self.args.borrow())) else {
            let CallInfo { operation, instance, .. } = &self.info;
            contain::report(operation, instance.as_deref());
            let instance = instance.as_deref().map(str::to_string);
            self.outcome = Some(Err(SqliteError::Panicked { operation, instance }));
            return Applied::Panicked;
        };
        let applied = match &outcome {
            Ok(_) => Applied::Done,
            Err(SqliteError::Refused(_)) => Applied::Refused,
            Err(_) => Applied::Failed,
        };
        self.outcome = Some(outcome);
        applied
    }

    fn bytes(&self) -> usize {
        self.info.bytes
    }

    fn has_panicked(&self) -> bool {
        matches!(self.outcome, Some(Err(SqliteError::Panicked { .. })))
    }

    fn answer(self: Box<Self>, fault: Option<&SqliteError>) {
        let Self {
            info: CallInfo { operation, instance, .. }, args, on_commit, outcome, reply, permit, ..
        } = *self;
        let answer = match (outcome, fault) {
            // The rows for which the call was refused may not have been committed either.
            (Some(Err(SqliteError::Refused(_))), Some(fault)) => Err(fault.classified(operation)),
            (Some(Err(own)), _) => Err(own.classified(operation)),
            (_, Some(fault)) => Err(fault.classified(operation)),
            (Some(Ok(value)), None) => {
                // A panic in `on_commit` does not undo the commit.
                if contain(|| on_commit(args.borrow(), &value)).is_none() {
                    contain::report(operation, instance.as_deref());
                }
                Ok(value)
            }
            (None, None) => Err(SqliteError::Closed.classified(operation)),
        };
        drop(permit);
        // A dropped caller gets no answer.
        let _ = reply.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::ProviderError;

    /// The answer to a call with this outcome, after a commit or after a fault of its transaction.
    fn answer(outcome: Result<()>, fault: Option<&SqliteError>) -> std::result::Result<(), ProviderError> {
        let mut ran = false;
        let on_commit = |(): &(), (): &()| ran = true;
        let (mut call, mut answer) =
            PendingCall::new(CallInfo::of("test"), (), |_, ()| Ok(()), on_commit, None);
        call.outcome = Some(outcome);
        Box::new(call).answer(fault);
        let answer = answer.try_recv().unwrap();
        assert_eq!(ran, answer.is_ok(), "on_commit runs after a commit only");
        answer.map_err(ProviderError::from)
    }

    #[test]
    fn refusal_is_reported_only_if_its_transaction_committed() {
        let refused = || Err(SqliteError::Refused("the lease is gone".to_string()));
        assert!(!answer(refused(), None).unwrap_err().is_retryable());
        assert!(answer(refused(), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
        assert!(answer(Ok(()), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
        assert_eq!(answer(Ok(()), None), Ok(()));
    }
}
