//! An instance as a value: everything that a store keeps of it, so that another store can continue it.

use crate::limits::MAX_MESSAGE_KEY_BYTES;
use crate::{Event, ExecutionStatus, HoldKind, WorkItem, check_instance_id};
use serde::{Deserialize, Serialize};

/// Everything that a store keeps of an instance at one moment. Leases and sessions are left out: they belong to processes.
///
/// Its JSON is a line of the export format, see `docs/export-format.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceSnapshot {
    /// The id of the instance.
    pub instance_id: String,
    /// The row of the instance; `None` before its first turn, when only messages wait for it.
    pub row: Option<SnapshotRow>,
    /// The executions that are kept, ascending.
    pub executions: Vec<SnapshotExecution>,
    /// Keys and values as the last execution that ended left them, by key.
    pub keys: Vec<SnapshotKey>,
    /// Changes of the current execution to the keys, by key.
    pub changed_keys: Vec<SnapshotKeyChange>,
    /// Waiting messages, in the order of delivery.
    pub messages: Vec<SnapshotMessage>,
    /// Waiting activities, oldest first.
    pub activities: Vec<SnapshotActivity>,
    /// The hold, if the instance is held.
    pub hold: Option<SnapshotHold>,
    /// The keys of messages that the instance has taken, ascending: it takes no message with one of them again. Files of version 1 have
    /// none.
    #[serde(default)]
    pub message_keys: Vec<String>,
}

/// The row of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRow {
    /// The name of the orchestration.
    pub orchestration_name: String,
    /// The version of the orchestration.
    pub orchestration_version: String,
    /// The newest execution.
    pub current_execution_id: u64,
    /// The parent, if the instance is a child.
    pub parent_instance_id: Option<String>,
    /// The custom status.
    pub custom_status: Option<String>,
    /// The number of changes of the custom status.
    pub custom_status_version: u64,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Milliseconds since the Unix epoch.
    pub updated_at: u64,
}

/// An execution with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotExecution {
    /// The number of the execution.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// The output, the error, or the input of the successor.
    pub output: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub started_at: u64,
    /// Milliseconds since the Unix epoch; `None` while it runs.
    pub completed_at: Option<u64>,
    /// The pinned version of the contract.
    pub pinned_version: Option<String>,
    /// All events, ascending.
    pub events: Vec<Event>,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotKey {
    /// The key.
    pub key: String,
    /// The value.
    pub value: String,
    /// Milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}

/// The change of a key by the current execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotKeyChange {
    /// The key.
    pub key: String,
    /// The new value; `None` if the key was removed.
    pub value: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub last_updated_at_ms: u64,
}

/// A waiting message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotMessage {
    /// The message.
    pub item: WorkItem,
    /// The time that orders the message among others.
    pub available_at: u64,
    /// The time from which on it can be fetched; for a timer the time at which it fires.
    pub visible_at: u64,
    /// The number of deliveries.
    pub attempt_count: u32,
}

/// A waiting activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotActivity {
    /// The activity.
    pub item: WorkItem,
    /// The time from which on it can be fetched.
    pub visible_at: u64,
    /// The number of deliveries.
    pub attempt_count: u32,
    /// The number of failures that its handler has reported.
    pub failures: u32,
    /// The text of the last reported failure.
    pub last_error: Option<String>,
}

/// The hold of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotHold {
    /// The text of a [`HoldKind`].
    pub kind: String,
    /// The person, program or build that holds the instance.
    pub actor: String,
    /// The reason, for people.
    pub reason: String,
    /// The time at which the hold was placed.
    pub held_at_ms: u64,
}

impl InstanceSnapshot {
    /// Whether the instance has ended.
    pub fn has_ended(&self) -> bool {
        let last = self.executions.last().and_then(|last| ExecutionStatus::from_text(&last.status));
        last.is_some_and(ExecutionStatus::ends_instance)
    }

    /// Whether the snapshot holds nothing of an instance.
    pub fn is_empty(&self) -> bool {
        self.row.is_none() && self.executions.is_empty() && self.messages.is_empty()
    }

    /// The first contradiction in the snapshot. The text names the part and quotes no payload.
    pub fn check(&self) -> Result<(), String> {
        check_instance_id(&self.instance_id).map_err(|error| error.to_string())?;
        if self.is_empty() {
            return Err("it has neither a row nor an execution nor a message".to_string());
        }
        self.check_row()?;
        self.check_executions()?;
        self.check_keys()?;
        self.check_messages()?;
        self.check_message_keys()?;
        self.check_activities()?;
        match &self.hold {
            Some(hold) if HoldKind::from_text(&hold.kind).is_none() => {
                Err(format!("its hold has the unknown kind '{}'", hold.kind))
            }
            Some(_) if self.has_ended() => Err("it has ended and is held".to_string()),
            Some(_) if self.is_cancelled() => Err("it is held, and a cancellation waits for it".to_string()),
            _ => Ok(()),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.messages.iter().any(|message| matches!(message.item, WorkItem::CancelInstance { .. }))
    }

    fn check_row(&self) -> Result<(), String> {
        let Some(row) = &self.row else {
            return match self.keys.is_empty() && self.changed_keys.is_empty() && self.activities.is_empty() {
                true => Ok(()),
                false => Err("it has keys or activities, and no row".to_string()),
            };
        };
        if let Some(parent) = &row.parent_instance_id {
            check_instance_id(parent).map_err(|error| format!("its parent: {error}"))?;
            if *parent == self.instance_id {
                return Err("it is its own parent".to_string());
            }
        }
        match self.executions.last() {
            Some(last) if last.execution_id == row.current_execution_id => Ok(()),
            _ => Err(format!(
                "its current execution {} is not the last of its executions",
                row.current_execution_id
            )),
        }
    }

    fn check_executions(&self) -> Result<(), String> {
        let mut before = 0;
        for execution in &self.executions {
            let id = execution.execution_id;
            if id <= before {
                return Err(format!("execution {id} does not follow execution {before}"));
            }
            before = id;
            let Some(status) = ExecutionStatus::from_text(&execution.status) else {
                return Err(format!("execution {id} has the unknown status '{}'", execution.status));
            };
            if status.ends_execution() != execution.completed_at.is_some() {
                return Err(format!("execution {id} is {status}, and its end does not fit"));
            }
            let pin = execution.pinned_version.as_deref();
            if pin.is_some_and(|pin| semver::Version::parse(pin).is_err()) {
                return Err(format!("execution {id} has a pinned version that is none"));
            }
            execution.check_events(&self.instance_id)?;
        }
        Ok(())
    }

    fn check_keys(&self) -> Result<(), String> {
        let fits = self.keys.is_sorted_by(|a, b| a.key < b.key)
            && self.changed_keys.is_sorted_by(|a, b| a.key < b.key);
        if fits { Ok(()) } else { Err("its keys are not in order".to_string()) }
    }

    fn check_message_keys(&self) -> Result<(), String> {
        if self.message_keys.iter().any(|key| key.is_empty() || key.len() > MAX_MESSAGE_KEY_BYTES) {
            return Err(format!("the key of a message has not 1 to {MAX_MESSAGE_KEY_BYTES} bytes"));
        }
        match self.message_keys.is_sorted_by(|a, b| a < b) {
            true => Ok(()),
            false => Err("the keys of its messages are not in order".to_string()),
        }
    }

    fn check_messages(&self) -> Result<(), String> {
        for (message, n) in self.messages.iter().zip(1..) {
            let kind = message.item.kind_name();
            if matches!(message.item, WorkItem::ActivityExecute { .. }) {
                return Err(format!("message {n} is an activity"));
            }
            if message.item.target_instance() != self.instance_id {
                return Err(format!("message {n} ({kind}) is for another instance"));
            }
            if message.visible_at < message.available_at {
                return Err(format!("message {n} ({kind}) is visible before it is available"));
            }
        }
        Ok(())
    }

    fn check_activities(&self) -> Result<(), String> {
        for (activity, n) in self.activities.iter().zip(1..) {
            if !matches!(activity.item, WorkItem::ActivityExecute { .. }) {
                return Err(format!("activity {n} is a message"));
            }
            if activity.item.target_instance() != self.instance_id {
                return Err(format!("activity {n} belongs to another instance"));
            }
        }
        Ok(())
    }
}

impl SnapshotExecution {
    /// The last event id, 0 without events.
    pub fn last_event_id(&self) -> u64 {
        self.events.last().map_or(0, |event| event.event_id)
    }

    fn check_events(&self, instance: &str) -> Result<(), String> {
        let id = self.execution_id;
        let mut before = 0;
        for event in &self.events {
            if event.event_id <= before {
                return Err(format!(
                    "event {} of execution {id} does not follow event {before}",
                    event.event_id
                ));
            }
            before = event.event_id;
            if event.instance_id != instance || event.execution_id != id {
                return Err(format!("event {before} of execution {id} belongs to another execution"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn snapshot() -> InstanceSnapshot {
        let kind = EventKind::CustomStatusUpdated { status: Some("s".to_string()) };
        let activity = WorkItem::ActivityExecute {
            instance: "i".to_string(),
            execution_id: 2,
            id: 1,
            name: "A".to_string(),
            input: "{}".to_string(),
            session_id: None,
            tag: None,
        };
        let message = WorkItem::ExternalRaised {
            instance: "i".to_string(),
            name: "e".to_string(),
            data: String::new(),
        };
        InstanceSnapshot {
            instance_id: "i".to_string(),
            row: Some(SnapshotRow {
                orchestration_name: "O".to_string(),
                orchestration_version: "1.0.0".to_string(),
                current_execution_id: 2,
                parent_instance_id: Some("p".to_string()),
                custom_status: None,
                custom_status_version: 0,
                created_at: 1,
                updated_at: 2,
            }),
            executions: vec![SnapshotExecution {
                execution_id: 2,
                status: "Running".to_string(),
                output: None,
                started_at: 1,
                completed_at: None,
                pinned_version: Some("0.1.32".to_string()),
                events: vec![Event::at(5, 1, "i", 2, None, kind)],
            }],
            keys: vec![SnapshotKey { key: "k".to_string(), value: "v".to_string(), last_updated_at_ms: 3 }],
            changed_keys: vec![SnapshotKeyChange {
                key: "k".to_string(),
                value: None,
                last_updated_at_ms: 4,
            }],
            messages: vec![SnapshotMessage {
                item: message,
                available_at: 1,
                visible_at: 1,
                attempt_count: 0,
            }],
            activities: vec![SnapshotActivity {
                item: activity,
                visible_at: 1,
                attempt_count: 2,
                failures: 1,
                last_error: Some("e".to_string()),
            }],
            hold: Some(SnapshotHold {
                kind: "paused".to_string(),
                actor: "ada".to_string(),
                reason: "r".to_string(),
                held_at_ms: 9,
            }),
            message_keys: vec!["m1".to_string(), "m2".to_string()],
        }
    }

    #[test]
    fn snapshot_without_a_contradiction_round_trips() {
        let snapshot = snapshot();
        assert_eq!(snapshot.check(), Ok(()));
        let text = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<InstanceSnapshot>(&text).unwrap(), snapshot);
        let of_version_1 = text.replacen(",\"message_keys\":[\"m1\",\"m2\"]", "", 1);
        let without_keys = InstanceSnapshot { message_keys: Vec::new(), ..snapshot };
        assert_eq!(serde_json::from_str::<InstanceSnapshot>(&of_version_1).unwrap(), without_keys);
        assert!(serde_json::from_str::<InstanceSnapshot>(&text.replacen("\"row\"", "\"rows\"", 1)).is_err());
    }

    #[test]
    fn every_contradiction_is_named() {
        type Damage = fn(&mut InstanceSnapshot);
        let damages: [(&str, Damage); 21] = [
            ("instance id is empty", |s| s.instance_id.clear()),
            ("its own parent", |s| s.row.as_mut().unwrap().parent_instance_id = Some("i".to_string())),
            ("its parent: instance id", |s| s.row.as_mut().unwrap().parent_instance_id = Some(String::new())),
            ("current execution 3", |s| s.row.as_mut().unwrap().current_execution_id = 3),
            ("no row", |s| s.row = None),
            ("execution 2 does not follow execution 2", |s| s.executions.push(s.executions[0].clone())),
            ("unknown status 'Done'", |s| s.executions[0].status = "Done".to_string()),
            ("its end does not fit", |s| s.executions[0].completed_at = Some(1)),
            ("pinned version", |s| s.executions[0].pinned_version = Some("x".to_string())),
            ("event 1 of execution 2 does not follow event 1", |s| {
                let event = s.executions[0].events[0].clone();
                s.executions[0].events.push(event);
            }),
            ("belongs to another execution", |s| s.executions[0].events[0].execution_id = 1),
            ("not in order", |s| s.keys.push(s.keys[0].clone())),
            ("messages are not in order", |s| s.message_keys.reverse()),
            ("key of a message has not 1", |s| s.message_keys[0].clear()),
            ("message 1 is an activity", |s| s.messages[0].item = s.activities[0].item.clone()),
            ("message 1 (ExternalRaised) is for another instance", |s| {
                let item = WorkItem::ExternalRaised {
                    instance: "j".to_string(),
                    name: String::new(),
                    data: String::new(),
                };
                s.messages[0].item = item;
            }),
            ("visible before it is available", |s| s.messages[0].visible_at = 0),
            ("activity 1 is a message", |s| s.activities[0].item = s.messages[0].item.clone()),
            ("unknown kind 'frozen'", |s| s.hold.as_mut().unwrap().kind = "frozen".to_string()),
            ("a cancellation waits", |s| {
                let (instance, reason) = ("i".to_string(), String::new());
                s.messages[0].item = WorkItem::CancelInstance { instance, reason };
            }),
            ("ended and is held", |s| {
                s.executions[0].status = "Completed".to_string();
                s.executions[0].completed_at = Some(1);
            }),
        ];
        for (expected, damage) in damages {
            let mut snapshot = snapshot();
            damage(&mut snapshot);
            let found = snapshot.check().unwrap_err();
            assert!(found.contains(expected), "{expected}: {found}");
        }
        let nothing = InstanceSnapshot { instance_id: "i".to_string(), ..InstanceSnapshot::default() };
        assert!(nothing.check().is_err());
    }
}
