//! Step 2: messages become events.
//!
//! | message | is dropped when | fails the instance when |
//! |---|---|---|
//! | outcome of an activity, timer or child | it belongs to another execution; its decision has an outcome; it is a timer that the code dropped | no decision, or a decision of another operation, has its id |
//! | outcome that is a system failure | as above | always; its event is recorded |
//! | event, queue message | never | never |
//! | cancellation | a cancellation is recorded | never |

use crate::cancel::TERMINATE;
use crate::draft::Draft;
use crate::execution::Execution;
use crate::history_summary::Standing;
use crate::op::{Op, queue};
use crate::replay_error::Mismatch;
use outlast_model::defect::{self, Defect};
use outlast_model::{ErrorDetails, Event, EventKind, WorkItem};

/// The messages of a turn as events.
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    /// The failure that ends the instance before its code sees the batch.
    pub(crate) failure: Option<ErrorDetails>,
}

/// The effect of one message.
pub(crate) enum Receipt {
    Record {
        source: Option<u64>,
        kind: EventKind,
        /// A system failure, which ends the instance.
        failure: Option<Box<ErrorDetails>>,
    },
    Drop,
    /// The instance fails, and the message is not recorded.
    Refuse(Mismatch),
}

impl Receipt {
    /// Records an event that belongs to no decision.
    pub(crate) fn record(kind: EventKind) -> Self {
        Self::Record { source: None, kind, failure: None }
    }
}

impl Execution {
    /// Turns the messages into events. The first turn of an execution begins with its start event and the queue messages
    /// that it takes over.
    pub(crate) fn receive(&mut self, draft: &mut Draft, messages: Vec<WorkItem>) -> Batch {
        let mut batch = Batch { events: Vec::new(), failure: None };
        if self.summary.events == 0 {
            let start = self.start(draft);
            batch.events.push(start);
            let lost = usize::from(defect::is_on(Defect::CarriedMessageLost));
            for (name, data) in self.opening.carried.clone().into_iter().skip(lost) {
                batch.events.push(self.record(draft, None, queue::delivered(name, data)).clone());
            }
        }
        let messages: Vec<WorkItem> = match defect::is_on(Defect::MessagesReversed) {
            true => messages.into_iter().rev().collect(),
            false => messages,
        };
        for message in messages {
            let receipt = match Op::of_message(&message) {
                Some(op) => op.receive(self, draft, message),
                None => self.receive_for_instance(message),
            };
            match receipt {
                Receipt::Drop => {}
                Receipt::Refuse(mismatch) => batch.failure = Some(mismatch.details()),
                Receipt::Record { source, kind, failure } => {
                    batch.failure = batch.failure.or(failure.map(|failure| *failure));
                    // Recorded before the next message is received: the first outcome of a decision counts.
                    batch.events.push(self.record(draft, source, kind).clone());
                }
            }
        }
        batch
    }

    /// Cancellation. Starts were taken out of the batch before the turn, and activities are in the other queue.
    fn receive_for_instance(&mut self, message: WorkItem) -> Receipt {
        let message = match message {
            WorkItem::CancelInstance { instance, reason } => {
                let terminates = reason.strip_prefix(TERMINATE).map(|reason| reason.trim_start().to_string());
                self.terminated = self.terminated.take().or_else(|| terminates.clone());
                WorkItem::CancelInstance { instance, reason: terminates.unwrap_or(reason) }
            }
            other => other,
        };
        match message {
            WorkItem::CancelInstance { reason, .. } if self.summary.cancel_reason.is_none() => {
                Receipt::record(EventKind::OrchestrationCancelRequested { reason })
            }
            _ => Receipt::Drop,
        }
    }
}

/// The outcome of a decision, read from its message.
pub(crate) struct Outcome {
    pub(crate) op: Op,
    /// The name of the outcome in error messages.
    pub(crate) name: &'static str,
    /// The execution that made the decision.
    pub(crate) execution_id: u64,
    /// The event of the decision.
    pub(crate) source: u64,
    pub(crate) kind: EventKind,
    /// See [`system_failure`].
    pub(crate) failure: Option<Box<ErrorDetails>>,
}

impl Outcome {
    pub(crate) fn receive(self, execution: &Execution) -> Receipt {
        let identity = execution.identity();
        if self.execution_id != identity.execution_id && !defect::is_on(Defect::OutcomeOfOldExecution) {
            return Receipt::Drop;
        }
        match execution.summary.standing(self.source, self.op) {
            Standing::Answered if !defect::is_on(Defect::SecondOutcome) => Receipt::Drop,
            Standing::Open | Standing::Answered => {
                Receipt::Record { source: Some(self.source), kind: self.kind, failure: self.failure }
            }
            Standing::AnotherKind(other) => {
                let (other, expected) = (other.name(), self.op.name());
                Receipt::Refuse(Mismatch::kind_of_completion(identity, self.source, other, expected))
            }
            Standing::Unknown => {
                Receipt::Refuse(Mismatch::unknown_completion(identity, self.name, self.source))
            }
        }
    }
}

/// The failure of an operation, if it ends the instance instead of reaching its code. All failures but application errors
/// do.
pub(crate) fn system_failure(details: &ErrorDetails) -> Option<Box<ErrorDetails>> {
    (!matches!(details, ErrorDetails::Application { .. })).then(|| Box::new(details.clone()))
}
