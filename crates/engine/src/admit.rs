//! Step 1: messages become events, or nothing.
//!
//! | message | dropped when | the turn is given up when |
//! |---|---|---|
//! | outcome of an activity, timer or child | it belongs to another execution; the operation is answered already; it is a timer that the code dropped | nothing was asked for under that id, or something of another kind |
//! | ... that is a system failure | as above | always, and the event is kept |
//! | event, queue message | never | - |
//! | cancellation | one is recorded already | - |

use crate::context::Identity;
use crate::ledger::{Kind, Ledger, Standing};
use crate::mismatch::Mismatch;
use outlast_model::{ErrorDetails, EventKind, WorkItem};

/// What becomes of one message.
pub(crate) enum Verdict {
    Record {
        source: Option<u64>,
        kind: EventKind,
    },
    Drop,
    /// The instance fails; the message is not recorded.
    Refuse(Mismatch),
}

/// Looks at one message. The ledger must know everything that was recorded before it, in this batch too: the first
/// outcome wins.
pub(crate) fn message(who: &Identity, ledger: &Ledger, message: WorkItem) -> Verdict {
    match message {
        WorkItem::ActivityCompleted { execution_id, id, result, .. } => {
            let kind = EventKind::ActivityCompleted { result };
            outcome(who, ledger, execution_id, id, Kind::Activity, "completion", kind)
        }
        WorkItem::ActivityFailed { execution_id, id, details, .. } => {
            let kind = EventKind::ActivityFailed { details };
            outcome(who, ledger, execution_id, id, Kind::Activity, "completion", kind)
        }
        WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } => {
            let kind = EventKind::TimerFired { fire_at_ms };
            outcome(who, ledger, execution_id, id, Kind::Timer, "timer", kind)
        }
        WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } => {
            let kind = EventKind::SubOrchestrationCompleted { result };
            outcome(who, ledger, parent_execution_id, parent_id, Kind::Child, "sub-orchestration", kind)
        }
        WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } => {
            let kind = EventKind::SubOrchestrationFailed { details };
            outcome(who, ledger, parent_execution_id, parent_id, Kind::Child, "sub-orchestration", kind)
        }
        WorkItem::ExternalRaised { name, data, .. } => plain(EventKind::ExternalEvent { name, data }),
        WorkItem::QueueMessage { name, data, .. } => plain(EventKind::QueueEventDelivered { name, data }),
        WorkItem::CancelInstance { .. } if ledger.cancel_reason.is_some() => Verdict::Drop,
        WorkItem::CancelInstance { reason, .. } => plain(EventKind::OrchestrationCancelRequested { reason }),
        // Starts were taken out before, and activities are in the other queue.
        WorkItem::StartOrchestration { .. }
        | WorkItem::ContinueAsNew { .. }
        | WorkItem::ActivityExecute { .. } => Verdict::Drop,
        #[cfg(feature = "replay-version-test")]
        WorkItem::ExternalRaised2 { name, topic, data, .. } => {
            plain(EventKind::ExternalEvent2 { name, topic, data })
        }
    }
}

fn plain(kind: EventKind) -> Verdict {
    Verdict::Record { source: None, kind }
}

fn outcome(
    who: &Identity,
    ledger: &Ledger,
    execution_id: u64,
    id: u64,
    expected: Kind,
    what: &str,
    kind: EventKind,
) -> Verdict {
    if execution_id != who.execution_id {
        return Verdict::Drop;
    }
    match ledger.standing(id, expected) {
        Standing::Open => Verdict::Record { source: Some(id), kind },
        Standing::Answered => Verdict::Drop,
        Standing::AnotherKind(other) => {
            Verdict::Refuse(Mismatch::kind_of_completion(who, id, other.name(), expected.name()))
        }
        Standing::Unknown => Verdict::Refuse(Mismatch::unknown_completion(who, what, id)),
    }
}

/// The failure that the code never sees, because it fails the instance: everything but application errors.
pub(crate) fn system_failure(kind: &EventKind) -> Option<&ErrorDetails> {
    match kind {
        EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } => {
            Some(details).filter(|details| !matches!(details, ErrorDetails::Application { .. }))
        }
        _ => None,
    }
}
