//! Step 5: whether the execution goes on or ends, and whether it is within its limits.

use crate::call_limits::too_large;
use crate::draft::Draft;
use crate::execution::{Execution, Stop};
use crate::finish::Close;
use crate::op::continue_as_new::Successor;
use crate::replay_error::Mismatch;
use outlast_model::{AppErrorKind, ErrorDetails};

/// How a turn ends.
pub(crate) enum Conclusion {
    /// The code waits.
    GoesOn,
    Ends(Close),
}

impl Execution {
    /// Decides how the turn ends. The first cause counts, in this order: `failure` of the batch, a replay error or
    /// panic or limit in `ran`, cancellation, continue-as-new, return, a limit of the history.
    pub(crate) fn conclude(
        &mut self,
        draft: &mut Draft,
        failure: Option<ErrorDetails>,
        ran: Result<(), Stop>,
    ) -> Conclusion {
        if let Some(details) = failure {
            return Conclusion::Ends(Close::Failed(details));
        }
        if let Err(stop) = ran {
            draft.report.broke_limit = matches!(stop, Stop::Limit);
            return Conclusion::Ends(Close::Failed(self.failure(draft, stop)));
        }
        if let Some(reason) = self.cancels_with() {
            // These drops are not noted.
            draft.dropped = self.unnoted_drops();
            return Conclusion::Ends(Close::Cancelled(reason));
        }
        let successor = self.context.lock().successor.take();
        if let Some(Successor { input, version }) = successor {
            return Conclusion::Ends(Close::ContinuedAsNew { input, version });
        }
        if let Err(stop) = self.note_drops(draft) {
            draft.dropped.clear();
            return Conclusion::Ends(Close::Failed(self.failure(draft, stop)));
        }
        match self.returned.take() {
            Some(result) => Conclusion::Ends(self.returned_close(draft, result)),
            None => match self.reason_to_stop(draft) {
                Some(details) => Conclusion::Ends(Close::Failed(details)),
                None => Conclusion::GoesOn,
            },
        }
    }

    /// The reason with which the execution ends as cancelled. An execution whose code observes the request goes on, until the
    /// code ends it.
    fn cancels_with(&mut self) -> Option<String> {
        if let Some(reason) = self.terminated.take() {
            return Some(reason);
        }
        let reason = self.summary.cancel_reason.clone()?;
        let mut state = self.context.lock();
        let goes_on = state.cancellation.is_observed && state.successor.is_none();
        state.cancellation.ends_with.take().or_else(|| (!goes_on).then_some(reason))
    }

    fn failure(&self, draft: &mut Draft, stop: Stop) -> ErrorDetails {
        match stop {
            Stop::Mismatch(mismatch) => {
                draft.report.mismatch = Some(mismatch.place());
                let state = self.context.lock();
                draft.report.missing_patch = state.missing_patch().filter(|_| mismatch.is_of_code());
                mismatch.advised(draft.report.missing_patch.is_some(), &state.patch_clauses()).details()
            }
            Stop::Panicked(message) => panicked(message, self.context.lock().limits.payload_bytes),
            Stop::Limit => {
                let violation = self.context.lock().violation.take().unwrap_or_default();
                ErrorDetails::refusal(&violation, self.instance())
            }
        }
    }

    fn returned_close(&self, draft: &mut Draft, result: Result<String, String>) -> Close {
        let limit = self.context.lock().limits.payload_bytes;
        let mut refuse = |what: &str, size: usize| {
            draft.report.broke_limit = true;
            let what = format!("{what} of instance '{}'", self.instance());
            Close::Failed(ErrorDetails::refusal(&too_large(&what, size, limit), self.instance()))
        };
        match result {
            Ok(output) if output.len() > limit => refuse("output", output.len()),
            Err(error) if error.len() > limit => refuse("error", error.len()),
            Ok(output) => Close::Completed(output),
            Err(error) => Close::Failed(failed(error)),
        }
    }

    /// The failure of an execution whose code waits: it waits for a future that is not durable, or is over a limit.
    fn reason_to_stop(&mut self, draft: &mut Draft) -> Option<ErrorDetails> {
        let state = self.context.lock();
        if !state.is_waiting() {
            if self.waker.is_kept_by_others() {
                let mismatch = Mismatch::not_durable(self.context.identity(), state.last_call);
                draft.report.mismatch = Some(mismatch.place());
                return Some(mismatch.details());
            }
            draft.report.awaits_nothing = !std::mem::replace(&mut self.has_warned, true);
        }
        let (events, bytes) = (self.summary.events, self.summary.bytes);
        let limits = &state.limits;
        if events > limits.history_events || bytes > limits.history_bytes {
            draft.report.broke_limit = true;
            let instance = &self.context.identity().instance;
            let text = format!(
                "history of instance '{instance}' has {events} events and {bytes} bytes, the limits are {} and {}: continue as \
                 new from time to time, or raise limits.history_events and limits.history_bytes",
                limits.history_events, limits.history_bytes
            );
            return Some(ErrorDetails::refusal(&text, instance));
        }
        // Only the turn that passes the threshold warns.
        let before = events - draft.commit.history_delta.len();
        if before <= limits.history_events_warning && events > limits.history_events_warning {
            draft.report.warnings.push(format!(
                "history has {events} events, and at {} the instance fails: continue as new from time to time",
                limits.history_events
            ));
        }
        None
    }
}

/// The failure for a panic, with its message cut to the limit of a payload.
fn panicked(mut message: String, limit: usize) -> ErrorDetails {
    let size = message.len();
    if size > limit {
        message.truncate(message.floor_char_boundary(limit));
        message.push_str(&format!("... ({size} bytes)"));
    }
    ErrorDetails::Application { kind: AppErrorKind::Panicked, message, retryable: false }
}

fn failed(message: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::OrchestrationFailed, message, retryable: false }
}
