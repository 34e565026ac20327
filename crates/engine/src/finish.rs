//! Step 6: the end of a turn. Every ending of an execution goes through [`Execution::finish`]: returned, failed, cancelled,
//! continued as new, over a limit, poisoned.

use crate::conclude::Conclusion;
use crate::draft::{Draft, Ending};
use crate::execution::Execution;
use crate::op::Op;
use crate::op::child::ParentClosePolicy;
use outlast_model::defect::{self, Defect};
use outlast_model::{AppErrorKind, ErrorDetails, EventKind, ExecutionStatus, WorkItem};

/// How an execution ends.
pub(crate) enum Close {
    Completed(String),
    Failed(ErrorDetails),
    Cancelled(String),
    ContinuedAsNew { input: String, version: Option<String> },
}

impl Close {
    pub(crate) fn status(&self) -> ExecutionStatus {
        match self {
            Self::Completed(_) => ExecutionStatus::Completed,
            Self::Failed(_) | Self::Cancelled(_) => ExecutionStatus::Failed,
            Self::ContinuedAsNew { .. } => ExecutionStatus::ContinuedAsNew,
        }
    }

    /// The terminal event.
    fn event(&self) -> EventKind {
        match self {
            Self::Completed(output) => EventKind::OrchestrationCompleted { output: output.clone() },
            Self::Failed(details) => EventKind::OrchestrationFailed { details: details.clone() },
            Self::Cancelled(reason) => EventKind::OrchestrationFailed { details: cancelled(reason.clone()) },
            Self::ContinuedAsNew { input, .. } => {
                EventKind::OrchestrationContinuedAsNew { input: input.clone() }
            }
        }
    }

    /// The output that the store keeps.
    fn output(&self) -> String {
        match self {
            Self::Completed(output) => output.clone(),
            Self::Failed(details) => details.display_message(),
            Self::Cancelled(reason) => cancelled(reason.clone()).display_message(),
            Self::ContinuedAsNew { input, .. } => input.clone(),
        }
    }

    /// The ending, for logs and metrics.
    fn reported(self) -> Ending {
        match self {
            Self::Completed(_) => Ending::Completed,
            Self::Failed(details) => Ending::Failed(details),
            Self::Cancelled(reason) => Ending::Failed(cancelled(reason)),
            Self::ContinuedAsNew { .. } => Ending::ContinuedAsNew,
        }
    }
}

fn cancelled(reason: String) -> ErrorDetails {
    let kind = AppErrorKind::Cancelled { reason };
    ErrorDetails::Application { kind, message: String::new(), retryable: false }
}

/// An execution that ends.
pub(crate) struct Closing<'a> {
    pub(crate) execution: &'a mut Execution,
    pub(crate) close: Close,
    pub(crate) policy: ParentClosePolicy,
}

impl Execution {
    pub(crate) fn finish(&mut self, draft: &mut Draft, conclusion: Conclusion, policy: ParentClosePolicy) {
        match conclusion {
            Conclusion::GoesOn => self.send_decisions(draft),
            Conclusion::Ends(close) => Closing { execution: self, close, policy }.end(draft),
        }
    }

    /// Sends the decisions of a turn after which the code waits. A decision whose future the code dropped in the same turn
    /// is not sent, unless [`Operation::is_sent_if_dropped`](crate::op::Operation::is_sent_if_dropped).
    fn send_decisions(&self, draft: &mut Draft) {
        if defect::is_on(Defect::DecisionNotSent) {
            draft.recorded.pop();
        }
        for decision in std::mem::take(&mut draft.recorded) {
            let op = decision.op;
            if op.is_sent_if_dropped() || !self.is_dropped(decision.token) {
                op.send(self, draft, decision);
            }
        }
        for (op, event_id) in std::mem::take(&mut draft.dropped) {
            op.after_drop(self, draft, event_id);
        }
    }
}

impl Closing<'_> {
    fn end(mut self, draft: &mut Draft) {
        self.close_waits(draft);
        self.execution.record(draft, None, self.close.event());
        for op in Op::ALL {
            op.end(&mut self, draft);
        }
        draft.commit.orchestrator_items.extend(self.message_to_parent());
        draft.commit.metadata.status = Some(self.close.status().to_string());
        draft.commit.metadata.output = Some(self.close.output());
        draft.report.age_ms = draft.now_ms.saturating_sub(self.execution.summary.started_at_ms);
        draft.report.ended = Some(self.close.reported());
    }

    fn close_waits(&mut self, draft: &mut Draft) {
        let mut waits = self.execution.context.lock().open_waits();
        waits.sort_by_key(|(op, _)| *op);
        for (op, event_id) in waits {
            if let Some(note) = op.cancellation("orchestration_terminal".to_string()) {
                self.execution.record(draft, Some(event_id), note);
            }
        }
    }

    /// The outcome for the parent. A successor has the same parent, which waits for the outcome of that one.
    fn message_to_parent(&self) -> Option<WorkItem> {
        let parent = self.execution.opening.parent.as_ref()?;
        match &self.close {
            Close::Completed(output) => Some(parent.success(output.clone())),
            Close::Failed(_) if defect::is_on(Defect::FailureNotSent) => None,
            Close::Failed(details) => Some(parent.failure(details.clone())),
            Close::Cancelled(reason) => Some(parent.failure(cancelled(reason.clone()))),
            Close::ContinuedAsNew { .. } => None,
        }
    }
}
