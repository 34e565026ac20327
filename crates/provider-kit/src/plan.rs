//! Plans the rows that a commit writes, before the transaction: rejects a commit that is invalid without reading stored rows, and
//! encodes all JSON.

use outlast_model::defect::{self, Defect};
use outlast_model::limits::MAX_MESSAGE_KEY_BYTES;
use outlast_model::{Event, EventKind, ExecutionStatus, WorkItem, check_instance_id, json};
use outlast_provider::{
    ErrorClass, ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, TurnCommit, saturating_ms,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// One event, ready to be inserted.
#[derive(Debug, Clone)]
pub struct HistoryRow {
    /// The event id.
    pub event_id: u64,
    /// The kind of the event.
    pub event_type: &'static str,
    /// The event as JSON.
    pub event_data: String,
}

/// One orchestrator message, ready to be inserted.
#[derive(Debug, Clone)]
pub struct MessageRow {
    /// The instance that it is delivered to.
    pub instance_id: String,
    /// The message as JSON.
    pub work_item: String,
    /// The earliest time at which it may be visible; the store uses the later of this and its own time.
    pub not_before: u64,
    /// Whether it starts an execution.
    pub begins: bool,
}

impl MessageRow {
    /// Whether it starts the successor of an execution that continued as new.
    pub fn continues(&self) -> bool {
        self.begins && self.work_item.starts_with("{\"ContinueAsNew\"")
    }

    /// Whether it cancels its instance, which releases a hold.
    pub fn cancels(&self) -> bool {
        self.work_item.starts_with("{\"CancelInstance\"")
    }
}

/// One activity, ready to be inserted.
#[derive(Debug, Clone)]
pub struct ActivityRow {
    /// The activity as JSON.
    pub work_item: String,
    /// The instance that scheduled it.
    pub instance_id: String,
    /// The execution that scheduled it.
    pub execution_id: u64,
    /// The id of its scheduling event.
    pub activity_id: u64,
    /// The session of the activity.
    pub session_id: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
}

/// One change of the key-value state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvChange {
    /// Sets a key.
    Set {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The time at which orchestration code wrote it.
        last_updated_at_ms: u64,
    },
    /// Removes a key.
    Clear {
        /// The key.
        key: String,
    },
    /// Removes all keys.
    ClearAll,
}

/// The rows and changes of a turn, ready to be committed.
#[derive(Debug, Clone)]
pub struct CommitPlan {
    /// The execution that it belongs to.
    pub execution_id: u64,
    /// Events to append.
    pub history: Vec<HistoryRow>,
    /// Activities to enqueue.
    pub activities: Vec<ActivityRow>,
    /// Messages to enqueue.
    pub messages: Vec<MessageRow>,
    /// Name, version, status and output of the execution, where the turn sets them.
    pub metadata: ExecutionMetadata,
    /// Activities to delete after the activities above are enqueued.
    pub cancelled: Vec<ScheduledActivityIdentifier>,
    /// The last change of the custom status in the turn; `None` if the turn does not change it.
    pub custom_status: Option<Option<String>>,
    /// Changes of the key-value state, in order.
    pub kv: Vec<KvChange>,
    /// The id of the event that ends the execution, if this turn ends it.
    pub terminal_event_id: Option<u64>,
}

impl CommitPlan {
    /// Plans the commit of a turn, or rejects it.
    pub fn of(turn: TurnCommit) -> Result<Self, ProviderError> {
        Self::new(
            turn.execution_id,
            &turn.history_delta,
            &turn.worker_items,
            &turn.orchestrator_items,
            turn.metadata,
            turn.cancelled_activities,
        )
    }

    /// Plans the commit of a turn from the arguments of `ack_orchestration_item`, or rejects it.
    pub fn new(
        execution_id: u64,
        delta: &[Event],
        activities: &[WorkItem],
        messages: &[WorkItem],
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<Self, ProviderError> {
        const ACK: &str = "ack_orchestration_item";
        Ok(Self {
            execution_id,
            history: history_rows(ACK, delta)?,
            activities: activities.iter().map(|item| activity_row(ACK, item)).collect::<Result<_, _>>()?,
            messages: messages.iter().map(|item| message_row(ACK, item)).collect::<Result<_, _>>()?,
            metadata,
            cancelled,
            custom_status: custom_status(delta),
            kv: kv_changes(delta),
            terminal_event_id: delta.iter().find(|event| event.is_terminal()).map(|event| event.event_id),
        })
    }

    /// Whether the turn ends its execution.
    pub fn ends_execution(&self) -> bool {
        self.metadata.execution_status().is_some_and(ExecutionStatus::ends_execution)
    }

    /// The bytes of all events, activities and messages as JSON.
    pub fn bytes(&self) -> usize {
        let history = self.history.iter().map(|row| row.event_data.len());
        let activities = self.activities.iter().map(|row| row.work_item.len());
        let messages = self.messages.iter().map(|row| row.work_item.len());
        history.chain(activities).chain(messages).sum()
    }

    /// Whether the turn ends its instance: it ends the execution and does not continue as new.
    pub fn ends_instance(&self) -> bool {
        self.metadata.execution_status().is_some_and(ExecutionStatus::ends_instance)
    }

    /// The highest event id of the turn.
    pub fn last_event_id(&self) -> Option<u64> {
        if defect::is_on(Defect::LastEventIsFirst) {
            return self.history.first().map(|row| row.event_id);
        }
        self.history.iter().map(|row| row.event_id).max()
    }
}

/// Encodes events as rows. Rejects an event id of 0 and a repeated event id.
pub fn history_rows(operation: &str, events: &[Event]) -> Result<Vec<HistoryRow>, ProviderError> {
    let mut seen = BTreeSet::new();
    let mut rows = Vec::with_capacity(events.len());
    for event in events {
        let event_type = event.kind.type_name();
        if event.event_id == 0 {
            return refuse(operation, format!("event {event_type} has id 0: the runtime assigns ids from 1"));
        }
        if !seen.insert(event.event_id) {
            return refuse(operation, duplicate_event(event.event_id));
        }
        let event_data = encoded(operation, json::encode_event(event))?;
        rows.push(HistoryRow { event_id: event.event_id, event_type, event_data });
    }
    Ok(rows)
}

/// The error message for an event id that the history has already.
pub fn duplicate_event(event_id: u64) -> String {
    format!("event id {event_id} exists already: history is append-only")
}

/// Encodes an activity as a row. Rejects every other work item.
pub fn activity_row(operation: &str, item: &WorkItem) -> Result<ActivityRow, ProviderError> {
    let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } = item else {
        return refuse(operation, format!("{} cannot go to the worker queue", item.kind_name()));
    };
    checked_id(operation, instance)?;
    Ok(ActivityRow {
        work_item: encoded(operation, json::encode_work_item(item))?,
        instance_id: instance.clone(),
        execution_id: *execution_id,
        activity_id: *id,
        session_id: session_id.clone().filter(|_| !defect::is_on(Defect::SessionLost)),
        tag: tag.clone().filter(|_| !defect::is_on(Defect::TagLost)),
    })
}

/// Encodes a message as a row. Rejects an activity.
pub fn message_row(operation: &str, item: &WorkItem) -> Result<MessageRow, ProviderError> {
    if let WorkItem::ActivityExecute { .. } = item {
        return refuse(
            operation,
            "ActivityExecute cannot go to the orchestrator queue: use the worker queue",
        );
    }
    let instance = item.target_instance();
    checked_id(operation, instance)?;
    Ok(MessageRow {
        instance_id: instance.to_string(),
        work_item: encoded(operation, json::encode_work_item(item))?,
        not_before: match item {
            _ if defect::is_on(Defect::TimerVisibleAtOnce) => 0,
            WorkItem::TimerFired { fire_at_ms, .. } => *fire_at_ms,
            _ => 0,
        },
        begins: matches!(item, WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. }),
    })
}

/// Rejects a key that no message can have.
pub fn checked_key(operation: &str, key: &str) -> Result<(), ProviderError> {
    match key.len() {
        1..=MAX_MESSAGE_KEY_BYTES => Ok(()),
        bytes => refuse(
            operation,
            format!("a message key has 1 to {MAX_MESSAGE_KEY_BYTES} bytes, this one has {bytes}"),
        ),
    }
}

/// Encodes the outcome of an activity as a row. Rejects every other work item.
pub fn completion_row(operation: &str, item: &WorkItem) -> Result<MessageRow, ProviderError> {
    check_completion(operation, item)?;
    message_row(operation, item)
}

/// Rejects a work item that is not the outcome of an activity.
pub fn check_completion(operation: &str, item: &WorkItem) -> Result<(), ProviderError> {
    match item {
        WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. } => {
            checked_id(operation, item.target_instance())
        }
        _ => refuse(operation, format!("{} is not a completion of an activity", item.kind_name())),
    }
}

/// The time at which a message becomes visible: after its delay, and not before `not_before`.
pub fn visible_at(row: &MessageRow, now: u64, delay: Option<Duration>) -> u64 {
    now.saturating_add(delay.map_or(0, saturating_ms)).max(row.not_before)
}

/// Rejects an invalid instance id.
pub fn checked_id(operation: &str, instance: &str) -> Result<(), ProviderError> {
    check_instance_id(instance).or_else(|error| refuse(operation, error.to_string()))
}

fn custom_status(delta: &[Event]) -> Option<Option<String>> {
    delta.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => Some(status.clone()),
        _ => None,
    })
}

fn kv_changes(delta: &[Event]) -> Vec<KvChange> {
    let changes = delta.iter().filter_map(|event| match &event.kind {
        EventKind::KeyValueSet { key, value, last_updated_at_ms } => Some(KvChange::Set {
            key: key.clone(),
            value: value.clone(),
            last_updated_at_ms: *last_updated_at_ms,
        }),
        EventKind::KeyValueCleared { .. } if defect::is_on(Defect::ClearedKeyStays) => None,
        EventKind::KeyValueCleared { key } => Some(KvChange::Clear { key: key.clone() }),
        EventKind::KeyValuesCleared => Some(KvChange::ClearAll),
        _ => None,
    });
    changes.collect()
}

fn encoded(operation: &str, text: Result<String, json::JsonError>) -> Result<String, ProviderError> {
    text.map_err(|error| ProviderError::permanent(operation, error.to_string()).of_class(ErrorClass::Refused))
}

fn refuse<T>(operation: &str, message: impl Into<String>) -> Result<T, ProviderError> {
    Err(ProviderError::permanent(operation, message).of_class(ErrorClass::Refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, kind: EventKind) -> Event {
        Event::at(0, id, "i", 1, None, kind)
    }

    fn status(text: Option<&str>) -> EventKind {
        EventKind::CustomStatusUpdated { status: text.map(str::to_string) }
    }

    fn plan(delta: &[Event]) -> Result<CommitPlan, ProviderError> {
        CommitPlan::new(1, delta, &[], &[], ExecutionMetadata::default(), vec![])
    }

    #[test]
    fn the_last_custom_status_is_planned_and_none_if_the_turn_sets_none() {
        assert_eq!(plan(&[]).unwrap().custom_status, None);
        let delta = [event(1, status(Some("a"))), event(2, status(None))];
        assert_eq!(plan(&delta).unwrap().custom_status, Some(None));
    }

    #[test]
    fn continue_as_new_ends_the_execution_but_not_the_instance() {
        for (status, ends_execution, ends_instance) in [
            (None, false, false),
            (Some("Running"), false, false),
            (Some("ContinuedAsNew"), true, false),
            (Some("Completed"), true, true),
            (Some("Failed"), true, true),
        ] {
            let metadata =
                ExecutionMetadata { status: status.map(str::to_string), ..ExecutionMetadata::default() };
            let plan = CommitPlan::new(1, &[], &[], &[], metadata, vec![]).unwrap();
            let found = (plan.ends_execution(), plan.ends_instance());
            assert_eq!(found, (ends_execution, ends_instance), "{status:?}");
        }
    }

    #[test]
    fn key_value_changes_keep_their_order() {
        let set = EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 3 };
        let clear = EventKind::KeyValueCleared { key: "k".into() };
        let delta = [event(1, EventKind::KeyValuesCleared), event(2, set), event(3, clear)];
        let kv = plan(&delta).unwrap().kv;
        let set = KvChange::Set { key: "k".into(), value: "v".into(), last_updated_at_ms: 3 };
        assert_eq!(kv, [KvChange::ClearAll, set, KvChange::Clear { key: "k".into() }]);
    }

    #[test]
    fn a_plan_has_its_highest_event_id_and_whether_it_ends_the_execution() {
        assert_eq!(plan(&[]).unwrap().last_event_id(), None);
        let delta = [7, 9, 8].map(|id| event(id, status(None)));
        assert_eq!(plan(&delta).unwrap().last_event_id(), Some(9));
        for (status, expected) in [(None, false), (Some("Running"), false), (Some("Failed"), true)] {
            let metadata = ExecutionMetadata { status: status.map(str::to_string), ..Default::default() };
            let plan = CommitPlan::new(1, &[], &[], &[], metadata, vec![]).unwrap();
            assert_eq!(plan.ends_execution(), expected, "{status:?}");
        }
    }

    #[test]
    fn rows_decode_to_the_encoded_events_and_messages() {
        let stored = event(3, status(Some("s")));
        let rows = history_rows("op", std::slice::from_ref(&stored)).unwrap();
        assert_eq!(json::decode_event(&rows[0].event_data).unwrap(), stored);
        let done = |instance: &str| WorkItem::ActivityCompleted {
            instance: instance.into(),
            execution_id: 1,
            id: 2,
            result: "r".into(),
        };
        let row = completion_row("op", &done("i")).unwrap();
        assert_eq!((row.instance_id.as_str(), row.not_before), ("i", 0));
        assert_eq!(json::decode_work_item(&row.work_item).unwrap(), done("i"));
        let refusal = message_row("op", &done("")).unwrap_err();
        assert!(!refusal.is_retryable(), "an invalid instance id: {refusal}");
    }

    #[test]
    fn event_ids_of_zero_and_repeated_event_ids_are_rejected() {
        let message = |ids: &[u64]| {
            let delta: Vec<Event> = ids.iter().map(|id| event(*id, status(None))).collect();
            plan(&delta).unwrap_err().message
        };
        assert!(message(&[0]).contains("id 0"));
        assert!(message(&[4, 4]).contains("event id 4 exists already"));
    }

    #[test]
    fn work_items_for_the_wrong_queue_are_rejected() {
        let cancel = WorkItem::CancelInstance { instance: "i".into(), reason: "r".into() };
        assert!(
            activity_row("op", &cancel)
                .unwrap_err()
                .message
                .contains("CancelInstance cannot go to the worker")
        );
        assert!(completion_row("op", &cancel).unwrap_err().message.contains("not a completion"));
        assert!(message_row("op", &cancel).is_ok());
    }

    #[test]
    fn a_message_is_visible_after_its_delay_and_a_timer_not_before_it_fires() {
        let at = |fire_at_ms, delay: Option<u64>| {
            let item = WorkItem::TimerFired { instance: "i".into(), execution_id: 1, id: 2, fire_at_ms };
            visible_at(&message_row("op", &item).unwrap(), 1_000, delay.map(Duration::from_millis))
        };
        assert_eq!(
            [at(5_000, None), at(10, None), at(0, Some(700)), at(1_200, Some(700))],
            [5_000, 1_000, 1_700, 1_700]
        );
    }
}
