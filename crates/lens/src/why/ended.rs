//! Rules about an execution that has ended.

use super::diagnosis::{Finding, Rule};
use super::evidence::Evidence;
use super::turn;
use super::words::quoted;
use crate::count::times;
use crate::time::{moment, span};
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind, PoisonMessageType};

/// The finding about an execution whose last event ends it; `None` for an execution that runs.
pub(super) fn diagnose(evidence: &Evidence<'_>, last: &Event) -> Option<Finding> {
    match &last.kind {
        EventKind::OrchestrationCompleted { .. } => {
            Some(Finding::new(Rule::Completed, format!("completed {}", when(evidence, last))))
        }
        EventKind::OrchestrationFailed { details } => Some(failed(evidence, last, details)),
        EventKind::OrchestrationContinuedAsNew { .. } => Some(continued(evidence, last)),
        _ => None,
    }
}

/// The time of the end, and the duration of the execution.
fn when(evidence: &Evidence<'_>, last: &Event) -> String {
    let began = evidence.history.first().map_or(last.timestamp_ms, |first| first.timestamp_ms);
    let took = span(last.timestamp_ms.saturating_sub(began));
    format!("at {} UTC, after {took}", moment(last.timestamp_ms))
}

fn failed(evidence: &Evidence<'_>, last: &Event, details: &ErrorDetails) -> Finding {
    let when = when(evidence, last);
    match cause(details) {
        None => Finding::new(Rule::Cancelled, format!("was cancelled {when}")),
        Some(cause) => Finding::new(Rule::Failed, format!("failed {when}: {cause}")),
    }
}

/// The kind of a failure, without texts of the user; `None` for a cancellation.
pub(super) fn cause(details: &ErrorDetails) -> Option<String> {
    Some(match details {
        ErrorDetails::Application { kind, .. } => match kind {
            AppErrorKind::Cancelled { .. } => return None,
            AppErrorKind::ActivityFailed => "an activity returned an error".to_string(),
            AppErrorKind::OrchestrationFailed if details.is_refusal() => {
                "the engine refused a call or a size, which its error names".to_string()
            }
            AppErrorKind::OrchestrationFailed => "its code returned an error".to_string(),
            AppErrorKind::Panicked => "its code panicked".to_string(),
        },
        ErrorDetails::Configuration { .. } => {
            "its code made other decisions than its history holds (nondeterministic)".to_string()
        }
        ErrorDetails::Infrastructure { operation, .. } => {
            format!("the store or the runtime failed in {}", quoted(operation))
        }
        ErrorDetails::Poison { attempt_count, max_attempts, message_type, .. } => {
            let item = match message_type {
                PoisonMessageType::Orchestration { .. } => "a turn".to_string(),
                PoisonMessageType::Activity { activity_name, .. } => {
                    format!("activity {}", quoted(activity_name))
                }
                PoisonMessageType::FailedDeserialization { .. } => {
                    "a history that does not decode".to_string()
                }
            };
            let limit =
                format!("{item} was delivered {}, and the limit is {max_attempts}", times(*attempt_count));
            match details.poison_cause() {
                Some(cause) => format!("{limit}, because {cause}"),
                None => limit,
            }
        }
    })
}

/// The first turn of the successor has not been committed.
fn continued(evidence: &Evidence<'_>, last: &Event) -> Finding {
    let successor = last.execution_id + 1;
    let first_turn = format!("the first turn of execution {successor}");
    if let Some(mut finding) = turn::diagnose(evidence, &first_turn) {
        finding.says = format!("continued as new and {}", finding.says);
        return finding;
    }
    let says = format!("continued as new {}", when(evidence, last));
    match evidence.pending {
        None => Finding::new(Rule::Unknown, format!("{says}, and {first_turn} is not committed yet")),
        Some(_) => {
            let damage = "no queued message starts its successor: the store is damaged";
            Finding::new(Rule::NoSuccessor, format!("{says}, and {damage}"))
        }
    }
}
