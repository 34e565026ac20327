//! The requests to the writer.

use crate::SqliteError;
use crate::activity::ActivityAsk;
use crate::contain::{self, contain};
use crate::db::{Db, Result};
use crate::fetch::TurnAsk;
use crate::leased::LeaseKind;
use crate::park::Fetch;
use crate::transaction::Transaction;
use outlast_provider::ClassifiedError;
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

/// A call that the writer has not answered yet.
pub(crate) struct PendingCall<T, F, N> {
    pub(crate) operation: &'static str,
    /// The instance of the call, for the error after a panic.
    pub(crate) instance: Option<Box<str>>,
    pub(crate) bytes: usize,
    pub(crate) body: F,
    /// Runs on the writer after the commit, also if the caller was dropped.
    pub(crate) on_commit: N,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) reply: oneshot::Sender<std::result::Result<T, ClassifiedError>>,
    /// The permit under which the call was sent, released with the answer.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

impl<T, F, N> Call for PendingCall<T, F, N>
where
    T: Send,
    F: FnMut(&mut Transaction<'_>) -> Result<T> + Send,
    N: FnOnce(&T) + Send,
{
    fn apply(&mut self, tx: &mut Transaction<'_>) -> Applied {
        let Some(outcome) = contain(|| (self.body)(tx)) else {
            let instance = self.instance.as_deref();
            contain::report(self.operation, instance);
            let instance = instance.map(str::to_string);
            self.outcome = Some(Err(SqliteError::Panicked { operation: self.operation, instance }));
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
        self.bytes
    }

    fn has_panicked(&self) -> bool {
        matches!(self.outcome, Some(Err(SqliteError::Panicked { .. })))
    }

    fn answer(self: Box<Self>, fault: Option<&SqliteError>) {
        let Self { operation, instance, on_commit, outcome, reply, permit, .. } = *self;
        let answer = match (outcome, fault) {
            // The rows for which the call was refused may not have been committed either.
            (Some(Err(SqliteError::Refused(_))), Some(fault)) => Err(fault.classified(operation)),
            (Some(Err(own)), _) => Err(own.classified(operation)),
            (_, Some(fault)) => Err(fault.classified(operation)),
            (Some(Ok(value)), None) => {
                // A panic in `on_commit` does not undo the commit.
                if contain(|| on_commit(&value)).is_none() {
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
        let (reply, mut answer) = oneshot::channel();
        let body = |_: &mut Transaction<'_>| Ok(());
        let mut ran = false;
        let on_commit = |(): &()| ran = true;
        let (outcome, instance, permit) = (Some(outcome), None, None);
        let call =
            PendingCall { operation: "test", instance, bytes: 0, body, on_commit, outcome, reply, permit };
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
