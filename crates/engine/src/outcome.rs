//! How a turn ends, and step 5: what the limits say to that.

use crate::draft::Draft;
use crate::drops::Children;
use crate::execution::{Execution, Stop};
use crate::finish::Close;
use crate::limits::too_large;
use crate::mismatch::Mismatch;
use outlast_model::{AppErrorKind, ErrorDetails};

/// How the code stands at the end of a turn.
pub(crate) enum Outcome {
    GoesOn { dropped_children: Children },
    Ends { close: Close, dropped_children: Children },
}

impl From<Close> for Outcome {
    fn from(close: Close) -> Self {
        Self::Ends { close, dropped_children: Children::new() }
    }
}

impl Execution {
    /// Decides how the turn ends. What comes first here wins.
    pub(crate) fn outcome(
        &mut self,
        draft: &mut Draft,
        abort: Option<ErrorDetails>,
        ran: Result<(), Stop>,
    ) -> Outcome {
        if let Some(details) = abort {
            return Close::Failed(details).into();
        }
        if let Err(stop) = ran {
            draft.report.broke_limit = matches!(stop, Stop::Limit);
            return Close::Failed(self.failure(stop)).into();
        }
        if let Some(reason) = self.ledger.cancel_reason.clone() {
            let dropped_children = self.dropped_children();
            return Outcome::Ends { close: Close::Cancelled(reason), dropped_children };
        }
        let successor = self.context.lock().successor.take();
        if let Some(successor) = successor {
            return Close::ContinuedAsNew { input: successor.input, version: successor.version }.into();
        }
        let dropped_children = match self.note_drops(draft) {
            Ok(dropped) => dropped,
            Err(stop) => return Close::Failed(self.failure(stop)).into(),
        };
        match self.returned.take() {
            Some(result) => Outcome::Ends { close: self.returned_close(draft, result), dropped_children },
            None => match self.reason_to_stop(draft) {
                Some(details) => Outcome::Ends { close: Close::Failed(details), dropped_children },
                None => Outcome::GoesOn { dropped_children },
            },
        }
    }

    fn failure(&self, stop: Stop) -> ErrorDetails {
        match stop {
            Stop::Mismatch(mismatch) => mismatch.details(),
            Stop::Panicked(message) => panicked(message, self.context.lock().limits.payload_bytes),
            Stop::Limit => {
                let violation = self.context.lock().violation.take().unwrap_or_default();
                failed(format!("{violation} (instance '{}')", self.instance()))
            }
        }
    }

    fn returned_close(&self, draft: &mut Draft, result: Result<String, String>) -> Close {
        let limit = self.context.lock().limits.payload_bytes;
        let mut refuse = |what: &str, size: usize| {
            draft.report.broke_limit = true;
            let what = format!("{what} of instance '{}'", self.instance());
            Close::Failed(failed(too_large(&what, size, limit)))
        };
        match result {
            Ok(output) if output.len() > limit => refuse("output", output.len()),
            Err(error) if error.len() > limit => refuse("error", error.len()),
            Ok(output) => Close::Completed(output),
            Err(error) => Close::Failed(failed(error)),
        }
    }

    /// Step 5: what keeps code that waits from going on.
    fn reason_to_stop(&mut self, draft: &mut Draft) -> Option<ErrorDetails> {
        let state = self.context.lock();
        if !state.is_waiting() {
            if self.alarm.is_kept_by_others() {
                return Some(Mismatch::not_durable(self.context.identity(), state.last_call).details());
            }
            draft.report.is_parked = !std::mem::replace(&mut self.warned_parked, true);
        }
        let (events, bytes) = (self.ledger.events, self.ledger.bytes);
        let limits = &state.limits;
        if events > limits.history_events || bytes > limits.history_bytes {
            draft.report.broke_limit = true;
            return Some(failed(format!(
                "history of instance '{}' has {events} events and {bytes} bytes, the limits are {} and {}: continue as \
                 new from time to time, or raise limits.history_events and limits.history_bytes",
                self.context.identity().instance,
                limits.history_events,
                limits.history_bytes
            )));
        }
        // In the turn that crosses it.
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

/// The panic's own words, as far as a history may hold them.
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
