//! Logs and metrics of turns and activities. Each committed turn and each activity run is published once.

use crate::core::Core;
use outlast_engine::{Ending, Report, TraceLine};
use outlast_model::{ErrorDetails, PoisonMessageType};
use std::time::Duration;

/// Publishes a turn after its commit.
pub(crate) fn turn(core: &Core, instance: &str, worker: &str, report: &Report) {
    traces(core, instance, report);
    let (name, version, execution_id) = (report.name.as_str(), report.version.as_str(), report.execution_id);
    for child in &report.children_started {
        core.metrics.record_suborchestration_call(name, child, "started");
    }
    for child in &report.children_ended {
        let seconds = Duration::from_millis(child.took_ms).as_secs_f64();
        core.metrics.suborchestration_ended(name, &child.name, child.outcome, seconds);
    }
    for retry in &report.retries {
        core.metrics.record_activity_retry(&retry.name, retry.attempt, retry.tag.as_deref());
    }
    if let Some(initiated_by) = report.started {
        core.metrics.record_orchestration_start(name, version, initiated_by);
        tracing::debug!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
            worker_id = worker, "Orchestration started"
        );
    }
    if report.awaits_nothing {
        tracing::warn!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, orchestration_name = name,
            "the orchestration waits for no event that can occur; only a cancellation can end it"
        );
    }
    if let Some(ending) = &report.ended {
        ended(core, instance, worker, report, ending);
    }
}

/// Logs and counts the end of an execution.
fn ended(core: &Core, instance: &str, worker: &str, report: &Report, ending: &Ending) {
    let (name, version, execution_id) = (report.name.as_str(), report.version.as_str(), report.execution_id);
    let events = report.events;
    let seconds = Duration::from_millis(report.age_ms).as_secs_f64();
    let status = match ending {
        Ending::Completed => "success",
        Ending::Failed(_) => "failed",
        Ending::ContinuedAsNew => "continuedAsNew",
    };
    core.metrics.record_orchestration_completion(name, version, status, seconds, report.turns, events as u64);
    match ending {
        Ending::Completed => {
            tracing::debug!(
                target: "duroxide::runtime",
                instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
                worker_id = worker, history_events = events, "Orchestration completed"
            );
        }
        Ending::ContinuedAsNew => {
            core.metrics.record_continue_as_new(name, execution_id);
            tracing::debug!(
                target: "duroxide::runtime",
                instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
                worker_id = worker, history_events = events, "Orchestration continued as new"
            );
        }
        Ending::Failed(details) => failed(core, instance, worker, report, details),
    }
}

/// Logs and counts the failure of an execution.
fn failed(core: &Core, instance: &str, worker: &str, report: &Report, details: &ErrorDetails) {
    let (name, version, execution_id) = (report.name.as_str(), report.version.as_str(), report.execution_id);
    let events = report.events;
    let error_type = match details {
        ErrorDetails::Application { .. } => "app_error",
        ErrorDetails::Infrastructure { .. } => "infrastructure_error",
        ErrorDetails::Configuration { .. } => "config_error",
        ErrorDetails::Poison { .. } => "unknown",
    };
    core.metrics.record_orchestration_failure(name, version, error_type, details.category());
    if matches!(details, ErrorDetails::Poison { .. }) {
        core.metrics.record_orchestration_poison();
    }
    let error = match report.broke_limit {
        true => details.display_message(),
        false => loggable(core, details, || format!("outlast instance show {instance}")),
    };
    match details {
        ErrorDetails::Application { .. } => tracing::warn!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
            worker_id = worker, history_events = events, error_type, error,
            "Orchestration failed"
        ),
        _ => tracing::error!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
            worker_id = worker, history_events = events, error_type, error,
            "Orchestration failed"
        ),
    }
}

/// The text of a failure for the log. A message of the author's code or of a decoder may quote a payload, so it is logged only
/// with `log_error_texts`; otherwise the log names the command that prints it. Messages of the runtime quote no payloads.
fn loggable(core: &Core, details: &ErrorDetails, command: impl Fn() -> String) -> String {
    let may_quote = match details {
        ErrorDetails::Application { .. } | ErrorDetails::Infrastructure { .. } => true,
        ErrorDetails::Poison { message_type, .. } => {
            matches!(message_type, PoisonMessageType::FailedDeserialization { .. })
        }
        ErrorDetails::Configuration { .. } => false,
    };
    let text = details.display_message();
    match may_quote && !core.options.log_error_texts {
        true => {
            format!("not logged ({} bytes): `{}` prints it, or set log_error_texts", text.len(), command())
        }
        false => truncated(text),
    }
}

/// Truncates a text to 500 bytes for the log.
pub(crate) fn truncated(mut text: String) -> String {
    const LONGEST: usize = 500;
    let size = text.len();
    if size > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push_str(&format!("... ({size} bytes)"));
    }
    text
}

/// Logs the trace calls of the orchestration's code and the warnings of the engine. Also called for a turn that was not committed.
pub(crate) fn traces(core: &Core, instance: &str, report: &Report) {
    let (name, version, execution_id) = (report.name.as_str(), report.version.as_str(), report.execution_id);
    for TraceLine { level, message, without_quote } in &report.traces {
        let message = without_quote.as_ref().filter(|_| !core.options.log_error_texts).unwrap_or(message);
        macro_rules! line {
            ($macro:ident $(, $extra:ident)*) => {
                tracing::$macro!(
                    target: "duroxide::orchestration",
                    instance_id = instance, execution_id, orchestration_name = name, orchestration_version = version,
                    $($extra = %$extra,)* "{message}"
                )
            };
        }
        match level.to_ascii_uppercase().as_str() {
            "INFO" => line!(info),
            "WARN" => line!(warn),
            "ERROR" => line!(error),
            "DEBUG" => line!(debug),
            _ => line!(trace, level),
        }
    }
    for warning in &report.warnings {
        tracing::warn!(target: "duroxide::runtime", instance = instance, execution_id, orchestration_name = name, "{warning}");
    }
}

/// A run of an activity.
pub(crate) struct Activity<'a> {
    pub(crate) instance: &'a str,
    pub(crate) execution_id: u64,
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    pub(crate) tag: Option<&'a str>,
    /// The number of the delivery, counted from 1.
    pub(crate) attempt: u32,
    /// The number of earlier attempts of its retry policy.
    pub(crate) attempts_before: u32,
    pub(crate) run: Run<'a>,
}

/// The end of a run of an activity.
pub(crate) enum Run<'a> {
    Returned(&'a Result<String, ErrorDetails>),
    /// The handler failed, and runs again after this time.
    Retried(Duration),
    Cancelled,
}

/// Publishes a run of an activity, before its outcome is committed.
pub(crate) fn activity(core: &Core, activity: &Activity<'_>, took: Duration) {
    let outcome = match activity.run {
        Run::Returned(Ok(_)) => "success",
        Run::Returned(Err(_)) | Run::Retried(_) => "app_error",
        Run::Cancelled => "cancelled",
    };
    let retries = activity.attempt.saturating_sub(1).saturating_add(activity.attempts_before);
    core.metrics.record_activity_execution(activity.name, outcome, took.as_secs_f64(), retries, activity.tag);
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    core.metrics.record_worker_dispatcher_execution_duration(ms);
    let Activity { instance, execution_id, id, name, tag, .. } = activity;
    let tag = tag.unwrap_or("default");
    match activity.run {
        Run::Returned(Err(details)) => tracing::warn!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, activity_name = name, activity_id = id, activity_tag = tag,
            outcome, duration_ms = ms,
            // `instance show` may not print this error: the orchestration may handle it, for example with a retry.
            error = loggable(core, details, || {
                format!("outlast instance history {instance} --execution {execution_id} --payloads")
            }),
            "Activity failed"
        ),
        // The text may quote payloads. The error of the last attempt is in the history.
        Run::Retried(wait) => tracing::info!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, activity_name = name, activity_id = id, activity_tag = tag,
            outcome, duration_ms = ms, attempt = activity.attempt, retry_after = ?wait,
            "Activity failed and runs again"
        ),
        Run::Returned(Ok(result)) => tracing::debug!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, activity_name = name, activity_id = id, activity_tag = tag,
            outcome, duration_ms = ms, result_size = result.len(), "Activity completed"
        ),
        Run::Cancelled => tracing::debug!(
            target: "duroxide::runtime",
            instance_id = instance, execution_id, activity_name = name, activity_id = id, activity_tag = tag,
            outcome, duration_ms = ms, "Activity cancelled"
        ),
    }
}
