//! What the writer is asked to do.

use crate::SqliteError;
use crate::contain::{self, contain};
use crate::db::{Db, Result};
use crate::waiting::{LeaseKind, TurnAsk, Waiter, WorkAsk};
use outlast_provider::{ClassifiedError, Entropy};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// One request to the writer.
pub(crate) enum Command {
    /// A call that is applied once and answered when it is durable.
    Call(Box<dyn Call>),
    /// A fetch of a turn, with its place on the way to the writer.
    FetchTurn(Waiter<TurnAsk>, Option<OwnedSemaphorePermit>),
    /// A fetch of activities.
    FetchWork(Waiter<WorkAsk>, Option<OwnedSemaphorePermit>),
    /// A lease whose caller went away before it got it.
    Release(LeaseKind, String),
    /// A job for the writer's connection that must not run inside a transaction.
    Between(Between),
    /// The provider is being dropped.
    Stop,
}

/// Says whether the connection can be used for something else, which it cannot after a panic.
pub(crate) type Between = Box<dyn FnOnce(&Db) -> Health + Send>;

/// What a job left of the connection that it ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    Good,
    /// The job panicked.
    Panicked,
}

/// What a call sees: the open transaction and the time.
pub(crate) struct Cx<'a> {
    pub(crate) db: &'a Db,
    pub(crate) now: u64,
    pub(crate) entropy: &'a dyn Entropy,
    pub(crate) news: &'a mut News,
}

/// What a transaction made available to waiting fetches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct News {
    /// A turn may be ready.
    pub(crate) turns: bool,
    /// An activity may be ready.
    pub(crate) work: bool,
    /// Something becomes available at this time.
    pub(crate) later: u64,
}

impl Default for News {
    fn default() -> Self {
        Self { turns: false, work: false, later: u64::MAX }
    }
}

impl News {
    pub(crate) fn message_at(&mut self, visible_at: u64, now: u64) {
        match visible_at <= now {
            true => self.turns = true,
            false => self.later = self.later.min(visible_at),
        }
    }

    pub(crate) fn available_at(&mut self, at: u64) {
        self.later = self.later.min(at);
    }
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Applied {
    Done,
    /// It is wrong, or its lease is gone.
    Refused,
    /// The database failed it.
    Failed,
    /// It panicked.
    Panicked,
}

/// A call: applied inside a transaction, possibly more than once if that transaction is rolled back, and answered
/// after the commit.
pub(crate) trait Call: Send {
    fn apply(&mut self, cx: &mut Cx<'_>) -> Applied;
    /// How many bytes it carries.
    fn bytes(&self) -> usize;
    /// Whether it panicked when it was applied: then it is not applied again, and told so.
    fn has_panicked(&self) -> bool;
    /// Tells the caller how it went. `fault` overrides the call's own result: its transaction did not commit.
    fn answer(self: Box<Self>, fault: Option<&SqliteError>);
}

pub(crate) struct Body<T, F, N> {
    pub(crate) operation: &'static str,
    /// The instance that it is about, for the error after a panic.
    pub(crate) instance: Option<Box<str>>,
    pub(crate) bytes: usize,
    pub(crate) body: F,
    /// Runs on the writer when the call is durable, also if the caller went away.
    pub(crate) then: N,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) reply: oneshot::Sender<std::result::Result<T, ClassifiedError>>,
    /// Its share of the room for calls, given back with its answer.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

impl<T, F, N> Call for Body<T, F, N>
where
    T: Send,
    F: FnMut(&mut Cx<'_>) -> Result<T> + Send,
    N: FnOnce(&T) + Send,
{
    fn apply(&mut self, cx: &mut Cx<'_>) -> Applied {
        let Some(outcome) = contain(|| (self.body)(cx)) else {
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
        let Self { operation, instance, then, outcome, reply, room, .. } = *self;
        let answer = match (outcome, fault) {
            // What it was refused for was perhaps not committed either.
            (Some(Err(SqliteError::Refused(_))), Some(fault)) => Err(fault.classified(operation)),
            (Some(Err(own)), _) => Err(own.classified(operation)),
            (_, Some(fault)) => Err(fault.classified(operation)),
            (Some(Ok(value)), None) => {
                // The call is durable, whatever becomes of those who watch for it.
                if contain(|| then(&value)).is_none() {
                    contain::report(operation, instance.as_deref());
                }
                Ok(value)
            }
            (None, None) => Err(SqliteError::Closed.classified(operation)),
        };
        drop(room);
        // A caller that went away does not want to know.
        let _ = reply.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_provider::ProviderError;

    /// The answer to a call with this outcome whose transaction ended like that.
    fn answer(outcome: Result<()>, fault: Option<&SqliteError>) -> std::result::Result<(), ProviderError> {
        let (reply, mut answer) = oneshot::channel();
        let body = |_: &mut Cx<'_>| Ok(());
        let mut ran = false;
        let then = |(): &()| ran = true;
        let (outcome, instance, room) = (Some(outcome), None, None);
        Box::new(Body { operation: "test", instance, bytes: 0, body, then, outcome, reply, room })
            .answer(fault);
        let answer = answer.try_recv().unwrap();
        assert_eq!(ran, answer.is_ok(), "what follows a call follows its commit");
        answer.map_err(ProviderError::from)
    }

    #[test]
    fn a_refusal_counts_only_if_what_it_saw_was_committed() {
        let refused = || Err(SqliteError::Refused("the lease is gone".to_string()));
        assert!(!answer(refused(), None).unwrap_err().is_retryable());
        assert!(answer(refused(), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
        assert!(answer(Ok(()), Some(&SqliteError::DiskFull)).unwrap_err().is_retryable());
        assert_eq!(answer(Ok(()), None), Ok(()));
    }
}
