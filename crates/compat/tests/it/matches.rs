//! Every closed enum as outside code matches it: all variants, all fields, no wildcard. An added variant or field is a compile error
//! here, and so is a field of another type.

use duroxide::providers::{TagFilter, WorkItem};
use duroxide::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, EventKind, LogLevel,
    PoisonMessageType, ScheduleKind,
};
use std::collections::HashSet;
use std::time::Duration;

type Text = String;
type Maybe = Option<String>;
type Id = Option<u64>;
type Pairs = Vec<(String, String)>;

/// Accepts a value of exactly the type that is named.
fn is<T>(_: T) {}

#[test]
fn event_kinds_match_with_all_fields() {
    use EventKind::*;
    fn take_apart(kind: EventKind) {
        match kind {
            OrchestrationStarted {
                name,
                version,
                input,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
            } => {
                is::<(Text, Text, Text, Maybe, Id)>((name, version, input, parent_instance, parent_id));
                is::<(Id, Option<Pairs>)>((parent_execution_id, carry_forward_events));
                is::<Maybe>(initial_custom_status);
            }
            OrchestrationCompleted { output } => is::<Text>(output),
            OrchestrationFailed { details } => is::<ErrorDetails>(details),
            ActivityScheduled { name, input, session_id, tag } => {
                is::<(Text, Text, Maybe, Maybe)>((name, input, session_id, tag));
            }
            ActivityCompleted { result } => is::<Text>(result),
            ActivityFailed { details } => is::<ErrorDetails>(details),
            ActivityCancelRequested { reason } => is::<Text>(reason),
            TimerCreated { fire_at_ms } | TimerFired { fire_at_ms } => is::<u64>(fire_at_ms),
            ExternalSubscribed { name } => is::<Text>(name),
            ExternalEvent { name, data } => is::<(Text, Text)>((name, data)),
            OrchestrationChained { name, instance, input }
            | SubOrchestrationScheduled { name, instance, input } => {
                is::<(Text, Text, Text)>((name, instance, input));
            }
            SubOrchestrationCompleted { result } => is::<Text>(result),
            SubOrchestrationFailed { details } => is::<ErrorDetails>(details),
            SubOrchestrationCancelRequested { reason } => is::<Text>(reason),
            OrchestrationContinuedAsNew { input } => is::<Text>(input),
            OrchestrationCancelRequested { reason } => is::<Text>(reason),
            ExternalSubscribedCancelled { reason } => is::<Text>(reason),
            QueueSubscribed { name } => is::<Text>(name),
            QueueEventDelivered { name, data } => is::<(Text, Text)>((name, data)),
            QueueSubscriptionCancelled { reason } => is::<Text>(reason),
            CustomStatusUpdated { status } => is::<Maybe>(status),
            KeyValueSet { key, value, last_updated_at_ms } => {
                is::<(Text, Text, u64)>((key, value, last_updated_at_ms));
            }
            KeyValueCleared { key } => is::<Text>(key),
            KeyValuesCleared => {}
            #[cfg(feature = "replay-version-test")]
            ExternalSubscribed2 { name, topic } => is::<(Text, Text)>((name, topic)),
            #[cfg(feature = "replay-version-test")]
            ExternalEvent2 { name, topic, data } => is::<(Text, Text, Text)>((name, topic, data)),
        }
    }
    take_apart(KeyValuesCleared);
}

#[test]
fn work_items_match_with_all_fields() {
    use WorkItem::*;
    fn take_apart(item: WorkItem) {
        match item {
            StartOrchestration {
                instance,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                execution_id,
            } => {
                is::<(Text, Text, Text, Maybe)>((instance, orchestration, input, version));
                is::<(Maybe, Id, Id, u64)>((parent_instance, parent_id, parent_execution_id, execution_id));
            }
            ActivityExecute { instance, execution_id, id, name, input, session_id, tag } => {
                is::<(Text, u64, u64, Text, Text)>((instance, execution_id, id, name, input));
                is::<(Maybe, Maybe)>((session_id, tag));
            }
            ActivityCompleted { instance, execution_id, id, result } => {
                is::<(Text, u64, u64, Text)>((instance, execution_id, id, result));
            }
            ActivityFailed { instance, execution_id, id, details } => {
                is::<(Text, u64, u64, ErrorDetails)>((instance, execution_id, id, details));
            }
            TimerFired { instance, execution_id, id, fire_at_ms } => {
                is::<(Text, u64, u64, u64)>((instance, execution_id, id, fire_at_ms));
            }
            ExternalRaised { instance, name, data } | QueueMessage { instance, name, data } => {
                is::<(Text, Text, Text)>((instance, name, data));
            }
            SubOrchCompleted { parent_instance, parent_execution_id, parent_id, result } => {
                is::<(Text, u64, u64, Text)>((parent_instance, parent_execution_id, parent_id, result));
            }
            SubOrchFailed { parent_instance, parent_execution_id, parent_id, details } => {
                is::<(Text, u64, u64, ErrorDetails)>((
                    parent_instance,
                    parent_execution_id,
                    parent_id,
                    details,
                ));
            }
            CancelInstance { instance, reason } => is::<(Text, Text)>((instance, reason)),
            ContinueAsNew {
                instance,
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                carry_forward_events,
                initial_custom_status,
            } => {
                is::<(Text, Text, Text, Maybe)>((instance, orchestration, input, version));
                is::<(Maybe, Id, Id)>((parent_instance, parent_id, parent_execution_id));
                is::<(Pairs, Maybe)>((carry_forward_events, initial_custom_status));
            }
            #[cfg(feature = "replay-version-test")]
            ExternalRaised2 { instance, name, topic, data } => {
                is::<(Text, Text, Text, Text)>((instance, name, topic, data));
            }
        }
    }
    take_apart(CancelInstance { instance: "i".into(), reason: "stop".into() });
}

#[test]
fn errors_match_with_all_fields() {
    fn take_apart(error: ErrorDetails) {
        match error {
            ErrorDetails::Infrastructure { operation, message, retryable } => {
                is::<(Text, Text, bool)>((operation, message, retryable));
            }
            ErrorDetails::Configuration { kind: ConfigErrorKind::Nondeterminism, resource, message } => {
                is::<(Text, Maybe)>((resource, message));
            }
            ErrorDetails::Application { kind, message, retryable } => {
                match kind {
                    AppErrorKind::ActivityFailed
                    | AppErrorKind::OrchestrationFailed
                    | AppErrorKind::Panicked => {}
                    AppErrorKind::Cancelled { reason } => is::<Text>(reason),
                }
                is::<(Text, bool)>((message, retryable));
            }
            ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } => {
                match message_type {
                    PoisonMessageType::Orchestration { instance, execution_id } => {
                        is::<(Text, u64)>((instance, execution_id));
                    }
                    PoisonMessageType::Activity { instance, execution_id, activity_name, activity_id } => {
                        is::<(Text, u64, Text, u64)>((instance, execution_id, activity_name, activity_id));
                    }
                    PoisonMessageType::FailedDeserialization { instance, execution_id, error } => {
                        is::<(Text, u64, Text)>((instance, execution_id, error));
                    }
                }
                is::<(u32, u32, Text)>((attempt_count, max_attempts, message));
            }
        }
    }
    take_apart(ErrorDetails::Infrastructure {
        operation: "ack".into(),
        message: "x".into(),
        retryable: true,
    });
}

#[test]
fn actions_and_schedule_kinds_match_with_all_fields() {
    fn take_apart(action: Action) {
        match action {
            Action::CallActivity { scheduling_event_id, name, input, session_id, tag } => {
                is::<(u64, Text, Text, Maybe, Maybe)>((scheduling_event_id, name, input, session_id, tag));
            }
            Action::CreateTimer { scheduling_event_id, fire_at_ms } => {
                is::<(u64, u64)>((scheduling_event_id, fire_at_ms));
            }
            Action::WaitExternal { scheduling_event_id, name }
            | Action::DequeueEvent { scheduling_event_id, name } => {
                is::<(u64, Text)>((scheduling_event_id, name));
            }
            Action::StartOrchestrationDetached { scheduling_event_id, name, version, instance, input }
            | Action::StartSubOrchestration { scheduling_event_id, name, version, instance, input } => {
                is::<(u64, Text, Maybe, Text, Text)>((scheduling_event_id, name, version, instance, input));
            }
            Action::ContinueAsNew { input, version } => is::<(Text, Maybe)>((input, version)),
            Action::UpdateCustomStatus { status } => is::<Maybe>(status),
            #[cfg(feature = "replay-version-test")]
            Action::WaitExternal2 { scheduling_event_id, name, topic } => {
                is::<(u64, Text, Text)>((scheduling_event_id, name, topic));
            }
            Action::SetKeyValue { key, value, last_updated_at_ms } => {
                is::<(Text, Text, u64)>((key, value, last_updated_at_ms));
            }
            Action::ClearKeyValue { key } => is::<Text>(key),
            Action::ClearKeyValues => {}
        }
    }
    take_apart(Action::ClearKeyValues);
    match ScheduleKind::Timer {
        ScheduleKind::Activity { name } => is::<Text>(name),
        ScheduleKind::ExternalWait { event_name } | ScheduleKind::QueueDequeue { event_name } => {
            is::<Text>(event_name);
        }
        ScheduleKind::SubOrchestration { token } => is::<u64>(token),
        ScheduleKind::Timer => {}
    }
}

#[test]
fn filters_levels_and_policies_match_by_variant() {
    match TagFilter::default() {
        TagFilter::Tags(tags) | TagFilter::DefaultAnd(tags) => is::<HashSet<String>>(tags),
        TagFilter::Any | TagFilter::None => {}
        TagFilter::DefaultOnly => {}
    }
    match BackoffStrategy::default() {
        BackoffStrategy::None => {}
        BackoffStrategy::Fixed { delay } => is::<Duration>(delay),
        BackoffStrategy::Linear { base, max } => is::<(Duration, Duration)>((base, max)),
        BackoffStrategy::Exponential { base, multiplier, max } => {
            is::<(Duration, f64, Duration)>((base, multiplier, max));
        }
    }
    match LogLevel::Info {
        LogLevel::Info | LogLevel::Warn | LogLevel::Error => {}
    }
}
