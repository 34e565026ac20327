//! Converts the values of a sequence to values of the contract.

use super::ops::*;
use super::subject::Stored;
use outlast_provider::model::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};
use outlast_provider::{
    DispatcherCapabilityFilter, ExecutionMetadata, InstanceFilter, InstanceQuery, PruneOptions,
    ScheduledActivityIdentifier, SemverRange, TagFilter,
};
use std::time::Duration;

/// The state of a sequence at a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallTime {
    pub(super) now: u64,
    /// Position in the sequence: makes payloads differ.
    pub(super) step: usize,
}

pub(super) fn duration(ms: u64) -> Duration {
    match ms {
        FOR_EVER => Duration::MAX,
        ms => Duration::from_millis(ms),
    }
}

fn failure(text: String) -> ErrorDetails {
    ErrorDetails::Application { kind: AppErrorKind::ActivityFailed, message: text, retryable: false }
}

impl CallTime {
    fn ago(self, ago: Option<u64>) -> Option<u64> {
        // One more, so that the exact millisecond is included.
        ago.map(|ago| self.now.saturating_sub(ago).saturating_add(1))
    }

    pub(super) fn items(self, messages: &[Message]) -> Vec<WorkItem> {
        messages.iter().enumerate().map(|(nth, message)| self.item(message, nth)).collect()
    }

    pub(super) fn item(self, message: &Message, nth: usize) -> WorkItem {
        let text = format!("{}.{nth} ß", self.step);
        let start = |to: Id, version: Option<&str>| WorkItem::StartOrchestration {
            instance: to.to_string(),
            orchestration: "Flow".to_string(),
            input: text.clone(),
            version: version.map(str::to_string),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        match message {
            Message::Start(to) => start(to, None),
            Message::StartVersion(to) => start(to, Some("7")),
            Message::Continue(to) => WorkItem::ContinueAsNew {
                instance: to.to_string(),
                orchestration: "Again".to_string(),
                input: text,
                version: None,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: vec![],
                initial_custom_status: None,
            },
            Message::Completed(to, id) => WorkItem::ActivityCompleted {
                instance: to.to_string(),
                execution_id: 1,
                id: *id,
                result: text,
            },
            Message::Failed(to, id) => WorkItem::ActivityFailed {
                instance: to.to_string(),
                execution_id: 1,
                id: *id,
                details: failure(text),
            },
            Message::Timer(to, fires_in) => WorkItem::TimerFired {
                instance: to.to_string(),
                execution_id: 1,
                id: self.step as u64,
                fire_at_ms: match *fires_in {
                    i64::MAX => u64::MAX,
                    fires_in => self.now.saturating_add_signed(fires_in),
                },
            },
            Message::External(to) => {
                WorkItem::ExternalRaised { instance: to.to_string(), name: "e".to_string(), data: text }
            }
            Message::ChildCompleted(to) => WorkItem::SubOrchCompleted {
                parent_instance: to.to_string(),
                parent_execution_id: 1,
                parent_id: 1,
                result: text,
            },
            Message::ChildFailed(to) => WorkItem::SubOrchFailed {
                parent_instance: to.to_string(),
                parent_execution_id: 1,
                parent_id: 1,
                details: failure(text),
            },
            Message::Cancel(to) => WorkItem::CancelInstance { instance: to.to_string(), reason: text },
            Message::Queue(to) => {
                WorkItem::QueueMessage { instance: to.to_string(), name: "q".to_string(), data: text }
            }
            Message::Activity { of, execution, id, session, tag } => WorkItem::ActivityExecute {
                instance: of.to_string(),
                execution_id: *execution,
                id: *id,
                name: "Work".to_string(),
                input: text,
                session_id: session.map(str::to_string),
                tag: tag.map(str::to_string),
            },
        }
    }

    /// The completion of a fetched activity.
    pub(super) fn completion(self, completion: &Completion, done: Option<&WorkItem>) -> WorkItem {
        let (instance, execution_id, id) = match done {
            Some(WorkItem::ActivityExecute { instance, execution_id, id, .. }) => {
                (instance.clone(), *execution_id, *id)
            }
            _ => ("a".to_string(), 1, 1),
        };
        let text = format!("{} done", self.step);
        match completion {
            Completion::Done => WorkItem::ActivityCompleted { instance, execution_id, id, result: text },
            Completion::Failed => {
                WorkItem::ActivityFailed { instance, execution_id, id, details: failure(text) }
            }
            Completion::Other(message) => self.item(message, 0),
        }
    }

    pub(super) fn events(
        self,
        events: &[(EventId, Happened)],
        instance: &str,
        execution: u64,
        mut stored: Stored,
    ) -> Vec<Event> {
        let mut built = Vec::new();
        for (nth, (id, happened)) in events.iter().enumerate() {
            let event_id = match id {
                EventId::Next => stored.last_event + 1,
                EventId::Skip => stored.last_event + 7,
                EventId::Repeat => stored.last_event,
                EventId::Zero => 0,
            };
            stored.last_event = stored.last_event.max(event_id);
            let kind = self.kind(happened, nth, stored.is_over);
            let event = Event::at(self.now, event_id, instance, execution, None, kind);
            stored.is_over |= event.is_terminal();
            built.push(event);
        }
        built
    }

    fn kind(self, happened: &Happened, nth: usize, is_over: bool) -> EventKind {
        let text = format!("{}.{nth} é", self.step);
        let scheduled = EventKind::TimerCreated { fire_at_ms: self.step as u64 };
        match happened {
            Happened::Scheduled => scheduled,
            Happened::Completed | Happened::Failed | Happened::ContinuedAsNew if is_over => scheduled,
            Happened::Completed => EventKind::OrchestrationCompleted { output: text },
            Happened::Failed => EventKind::OrchestrationFailed { details: failure(text) },
            Happened::ContinuedAsNew => EventKind::OrchestrationContinuedAsNew { input: text },
            Happened::Started { carried } => EventKind::OrchestrationStarted {
                name: "Recorded".to_string(),
                version: "9".to_string(),
                input: text,
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: Some(vec![("e".to_string(), "d".to_string()); *carried]),
                initial_custom_status: None,
            },
            Happened::Status(status) => {
                EventKind::CustomStatusUpdated { status: status.map(|status| format!("{status}{text}")) }
            }
            Happened::Set(key, value) => EventKind::KeyValueSet {
                key: key.to_string(),
                value: value.to_string(),
                last_updated_at_ms: self.step as u64,
            },
            Happened::Clear(key) => EventKind::KeyValueCleared { key: key.to_string() },
            Happened::ClearAll => EventKind::KeyValuesCleared,
        }
    }

    pub(super) fn filter(self, bulk: &Bulk) -> InstanceFilter {
        InstanceFilter {
            instance_ids: bulk.ids.as_ref().map(|ids| ids.iter().map(ToString::to_string).collect()),
            completed_before: self.ago(bulk.finished_ago),
            limit: bulk.limit,
        }
    }

    pub(super) fn pruning(self, keep_last: Option<u32>, finished_ago: Option<u64>) -> PruneOptions {
        PruneOptions { keep_last, completed_before: self.ago(finished_ago) }
    }

    pub(super) fn query(self, query: &Query) -> InstanceQuery {
        let text = |text: Option<&str>| text.map(str::to_string);
        InstanceQuery {
            status: text(query.status),
            orchestration_name: text(query.name),
            id_prefix: text(query.prefix),
            parent_instance_id: text(query.parent),
            created_from: query.from_ago.map(|ago| self.now.saturating_sub(ago)),
            created_before: self.ago(query.before_ago),
            limit: query.limit,
            after: None,
        }
    }
}

impl Turn {
    pub(super) fn metadata(&self) -> ExecutionMetadata {
        let text = |text: Option<&str>| text.map(str::to_string);
        ExecutionMetadata {
            status: text(self.status),
            output: text(self.output),
            orchestration_name: text(self.name),
            orchestration_version: text(self.version),
            parent_instance_id: text(self.parent),
            pinned_duroxide_version: self.pin.map(|pin| semver::Version::parse(pin).unwrap()),
        }
    }

    pub(super) fn cancelled(&self) -> Vec<ScheduledActivityIdentifier> {
        let cancelled = self.cancelled.iter().map(|(of, execution_id, activity_id)| {
            let (execution_id, activity_id) = (*execution_id, *activity_id);
            ScheduledActivityIdentifier { instance: of.to_string(), execution_id, activity_id }
        });
        cancelled.collect()
    }
}

pub(super) fn supported(ranges: &[(&str, &str)]) -> DispatcherCapabilityFilter {
    let version = |text: &str| semver::Version::parse(text).unwrap();
    let ranges = ranges.iter().map(|(min, max)| SemverRange::new(version(min), version(max)));
    DispatcherCapabilityFilter { supported_duroxide_versions: ranges.collect() }
}

impl Tags {
    pub(super) fn filter(&self) -> TagFilter {
        match self {
            Self::Default => TagFilter::DefaultOnly,
            Self::Only(tags) => TagFilter::tags(tags.iter().copied()),
            Self::DefaultAnd(tags) => TagFilter::default_and(tags.iter().copied()),
            Self::Any => TagFilter::Any,
            Self::None => TagFilter::None,
        }
    }
}
