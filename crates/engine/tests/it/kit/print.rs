//! One line for each event and each piece of work.
//!
//! `3 ActivityCompleted <-2 "ok"` an event; `>` work that goes out; `-` an activity that is called off; `=` the ending;
//! `~` a trace line; `!` a warning.

use outlast_engine::TurnOutput;
use outlast_model::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};

pub(crate) fn event_line(event: &Event) -> String {
    let source = event.source_event_id.map_or(String::new(), |source| format!(" <-{source}"));
    let name = event.kind.type_name();
    let details = details(&event.kind);
    normalise(format!("{} {name}{source} {details}", event.event_id).trim_end())
}

fn details(kind: &EventKind) -> String {
    match kind {
        EventKind::OrchestrationStarted {
            name,
            input,
            parent_instance,
            parent_id,
            carry_forward_events,
            initial_custom_status,
            ..
        } => {
            let parent = parent_instance
                .as_ref()
                .map(|parent| format!(" parent={parent}#{}", parent_id.unwrap_or_default()));
            let carried = carry_forward_events.as_ref().map(|carried| format!(" carried={carried:?}"));
            let status = initial_custom_status.as_ref().map(|status| format!(" status={status:?}"));
            let extras = [parent, carried, status].into_iter().flatten().collect::<String>();
            format!("{name} {input:?}{extras}")
        }
        EventKind::OrchestrationCompleted { output } => format!("{output:?}"),
        EventKind::OrchestrationFailed { details }
        | EventKind::ActivityFailed { details }
        | EventKind::SubOrchestrationFailed { details } => error(details),
        EventKind::ActivityScheduled { name, input, session_id, tag } => {
            let session = session_id.as_ref().map_or(String::new(), |session| format!(" session={session}"));
            let tag = tag.as_ref().map_or(String::new(), |tag| format!(" tag={tag}"));
            format!("{name} {input:?}{session}{tag}")
        }
        EventKind::ActivityCompleted { result } | EventKind::SubOrchestrationCompleted { result } => {
            format!("{result:?}")
        }
        EventKind::ActivityCancelRequested { reason }
        | EventKind::SubOrchestrationCancelRequested { reason }
        | EventKind::OrchestrationCancelRequested { reason }
        | EventKind::ExternalSubscribedCancelled { reason }
        | EventKind::QueueSubscriptionCancelled { reason } => format!("{reason:?}"),
        EventKind::TimerCreated { fire_at_ms } => format!("@{fire_at_ms}"),
        EventKind::TimerFired { .. } => String::new(),
        EventKind::ExternalSubscribed { name } | EventKind::QueueSubscribed { name } => name.clone(),
        EventKind::ExternalEvent { name, data } | EventKind::QueueEventDelivered { name, data } => {
            format!("{name} {data:?}")
        }
        EventKind::OrchestrationChained { name, instance, input }
        | EventKind::SubOrchestrationScheduled { name, instance, input } => {
            format!("{name} {instance} {input:?}")
        }
        EventKind::OrchestrationContinuedAsNew { input } => format!("{input:?}"),
        EventKind::CustomStatusUpdated { status } => format!("{status:?}"),
        EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
            format!("{key}={value:?} @{last_updated_at_ms}")
        }
        EventKind::KeyValueCleared { key } => key.clone(),
        EventKind::KeyValuesCleared => String::new(),
        #[cfg(feature = "replay-version-test")]
        other => format!("{other:?}"),
    }
}

fn error(details: &ErrorDetails) -> String {
    let class = match details {
        ErrorDetails::Application { kind: AppErrorKind::Panicked, .. } => "panicked",
        ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } => "cancelled",
        other => other.category(),
    };
    format!("{class}: {}", details.display_message())
}

fn work_line(item: &WorkItem) -> String {
    match item {
        WorkItem::ActivityExecute { id, name, input, session_id, tag, .. } => {
            let session = session_id.as_ref().map_or(String::new(), |session| format!(" session={session}"));
            let tag = tag.as_ref().map_or(String::new(), |tag| format!(" tag={tag}"));
            format!("> activity {id} {name} {input:?}{session}{tag}")
        }
        WorkItem::TimerFired { id, fire_at_ms, .. } => format!("> timer {id} @{fire_at_ms}"),
        WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_id: Some(id),
            parent_execution_id,
            ..
        } => {
            let version = version.as_ref().map_or(String::new(), |version| format!(" v{version}"));
            let of = parent_execution_id.map_or("?".to_string(), |execution| execution.to_string());
            format!("> child {id} of {of}: {orchestration}{version} {instance} {input:?}")
        }
        WorkItem::StartOrchestration { instance, orchestration, input, version, .. } => {
            let version = version.as_ref().map_or(String::new(), |version| format!(" v{version}"));
            format!("> detached {orchestration}{version} {instance} {input:?}")
        }
        WorkItem::SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result } => {
            format!("> tell {parent_instance}/{parent_execution_id}#{parent_id} {result:?}")
        }
        WorkItem::SubOrchFailed { parent_instance, parent_execution_id, parent_id, details } => {
            format!("> tell {parent_instance}/{parent_execution_id}#{parent_id} {}", error(details))
        }
        WorkItem::CancelInstance { instance, reason } => format!("> cancel {instance} {reason:?}"),
        WorkItem::ContinueAsNew {
            input,
            version,
            parent_instance,
            carry_forward_events,
            initial_custom_status,
            ..
        } => {
            let version = version.as_ref().map(|version| format!(" v{version}"));
            let parent = parent_instance.as_ref().map(|parent| format!(" parent={parent}"));
            let carried = Some(carry_forward_events).filter(|carried| !carried.is_empty());
            let carried = carried.map(|carried| format!(" carried={carried:?}"));
            let status = initial_custom_status.as_ref().map(|status| format!(" status={status:?}"));
            let extras = [version, parent, carried, status].into_iter().flatten().collect::<String>();
            format!("> next {input:?}{extras}")
        }
        other => format!("> {other:?}"),
    }
}

pub(crate) fn output_text(output: &TurnOutput) -> String {
    let commit = &output.commit;
    let mut lines: Vec<String> = commit.history_delta.iter().map(event_line).collect();
    lines.extend(commit.worker_items.iter().chain(&commit.orchestrator_items).map(work_line));
    lines.extend(
        commit.cancelled_activities.iter().map(|activity| format!("- activity {}", activity.activity_id)),
    );
    lines.extend(commit.metadata.status.iter().map(|status| format!("= {status}")));
    lines.extend(output.report.traces.iter().map(|line| format!("~ {} {}", line.level, line.message)));
    lines.extend(output.report.warnings.iter().map(|warning| format!("! {warning}")));
    lines.extend(output.report.awaits_nothing.then(|| "! awaits nothing".to_string()));
    normalise(&lines.join("\n"))
}

/// Places in these tests move with every edit: `crates/engine/tests/it/x.rs:10:20` becomes `x.rs`.
pub(crate) fn normalise(text: &str) -> String {
    let mut parts = text.split("crates/engine/tests/it/");
    let mut normal = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(".rs:").map_or(0, |at| at + 3);
        normal.push_str(&part[..end]);
        let mut rest = &part[end..];
        for _ in ["line", "column"] {
            let number = rest.strip_prefix(':').unwrap_or(rest);
            rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        normal.push_str(rest);
    }
    normal
}
