//! Exports and imports of instances: the snapshot from the rows of a store, and the rows of a snapshot.

use crate::plan::{ActivityRow, HistoryRow, MessageRow, activity_row, history_rows, message_row};
use outlast_model::{
    InstanceSnapshot, SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey, SnapshotKeyChange,
    SnapshotMessage, SnapshotRow, WorkItem, json,
};
use outlast_provider::{AuditEntry, ExportOutcome, ProviderError};
use semver::Version;

const IMPORT: &str = "import_instance";

/// The part of an instance that a row of an export belongs to. The statements of the SQL stores name the numbers.
mod part {
    pub(super) const INSTANCE: i64 = 0;
    pub(super) const EXECUTION: i64 = 1;
    pub(super) const EVENT: i64 = 2;
    pub(super) const KEY: i64 = 3;
    pub(super) const CHANGED_KEY: i64 = 4;
    pub(super) const MESSAGE: i64 = 5;
    pub(super) const ACTIVITY: i64 = 6;
    pub(super) const HOLD: i64 = 7;
    pub(super) const MESSAGE_KEY: i64 = 8;
}

/// Whether the first text of a row of this part is JSON of the contract.
pub fn is_json_part(part: i64) -> bool {
    matches!(part, part::EVENT | part::MESSAGE | part::ACTIVITY)
}

/// A row of an export. One statement reads the rows of all tables, so that they are those of one moment.
///
/// | part | texts | numbers |
/// |---|---|---|
/// | 0 instance | name, version, parent, custom status | execution, version of the custom status, created, updated |
/// | 1 execution | status, output, pinned version | id, started, completed |
/// | 2 event | JSON | execution, id |
/// | 3 key | key, value | updated |
/// | 4 changed key | key, value | updated |
/// | 5 message | JSON | available, row, visible, deliveries |
/// | 6 activity | JSON, last error | row, visible, deliveries, failures |
/// | 7 hold | kind, actor, reason | held |
/// | 8 key of a message | key | |
///
/// Rows are in the order of their part and of their first two numbers.
#[derive(Debug, Clone, Default)]
pub struct ExportRow {
    /// The part of the instance.
    pub part: i64,
    /// Its texts.
    pub texts: [Option<String>; 4],
    /// Its numbers.
    pub numbers: [Option<i64>; 4],
}

impl ExportRow {
    fn number(&self, n: usize) -> u64 {
        self.optional_number(n).unwrap_or(0)
    }

    fn optional_number(&self, n: usize) -> Option<u64> {
        let number = self.numbers.get(n).copied().flatten();
        number.map(|number| u64::try_from(number).unwrap_or(0))
    }

    fn count(&self, n: usize) -> u32 {
        u32::try_from(self.number(n)).unwrap_or(u32::MAX)
    }

    /// Takes a text. A missing one is empty.
    fn text(&mut self, n: usize) -> String {
        self.optional_text(n).unwrap_or_default()
    }

    fn optional_text(&mut self, n: usize) -> Option<String> {
        self.texts.get_mut(n).and_then(Option::take)
    }
}

/// The snapshot of the rows of an instance, or the reason why a row does not decode.
pub fn exported(instance: &str, rows: impl IntoIterator<Item = ExportRow>) -> Result<ExportOutcome, String> {
    let mut snapshot = InstanceSnapshot { instance_id: instance.to_string(), ..InstanceSnapshot::default() };
    for row in rows {
        add(&mut snapshot, row)
            .map_err(|reason| format!("instance '{instance}' cannot be exported: {reason}"))?;
    }
    snapshot.keys.sort_by(|a, b| a.key.cmp(&b.key));
    snapshot.changed_keys.sort_by(|a, b| a.key.cmp(&b.key));
    snapshot.message_keys.sort();
    match snapshot.is_empty() {
        true => Ok(ExportOutcome::NotFound),
        false => Ok(ExportOutcome::Exported(Box::new(snapshot))),
    }
}

fn add(snapshot: &mut InstanceSnapshot, mut row: ExportRow) -> Result<(), String> {
    match row.part {
        part::INSTANCE => {
            snapshot.row = Some(SnapshotRow {
                orchestration_name: row.text(0),
                orchestration_version: row.text(1),
                parent_instance_id: row.optional_text(2),
                custom_status: row.optional_text(3),
                current_execution_id: row.number(0),
                custom_status_version: row.number(1),
                created_at: row.number(2),
                updated_at: row.number(3),
            });
        }
        part::EXECUTION => snapshot.executions.push(SnapshotExecution {
            execution_id: row.number(0),
            status: row.text(0),
            output: row.optional_text(1),
            started_at: row.number(1),
            completed_at: row.optional_number(2),
            pinned_version: row.optional_text(2),
            events: Vec::new(),
        }),
        part::EVENT => {
            let (execution_id, event_id) = (row.number(0), row.number(1));
            let event = json::decode_event(&row.text(0))
                .map_err(|error| format!("event {event_id} of execution {execution_id}: {error}"))?;
            let execution = snapshot.executions.iter_mut().find(|one| one.execution_id == execution_id);
            let execution =
                execution.ok_or_else(|| format!("execution {execution_id} has events and no row"))?;
            execution.events.push(event);
        }
        part::KEY => snapshot.keys.push(SnapshotKey {
            key: row.text(0),
            value: row.text(1),
            last_updated_at_ms: row.number(0),
        }),
        part::CHANGED_KEY => snapshot.changed_keys.push(SnapshotKeyChange {
            key: row.text(0),
            value: row.optional_text(1),
            last_updated_at_ms: row.number(0),
        }),
        part::MESSAGE => snapshot.messages.push(SnapshotMessage {
            item: item("a message", &row.text(0))?,
            available_at: row.number(0),
            visible_at: row.number(2),
            attempt_count: row.count(3),
        }),
        part::ACTIVITY => snapshot.activities.push(SnapshotActivity {
            item: item("an activity", &row.text(0))?,
            visible_at: row.number(1),
            attempt_count: row.count(2),
            failures: row.count(3),
            last_error: row.optional_text(1),
        }),
        part::HOLD => {
            snapshot.hold = Some(SnapshotHold {
                kind: row.text(0),
                actor: row.text(1),
                reason: row.text(2),
                held_at_ms: row.number(0),
            });
        }
        part::MESSAGE_KEY => snapshot.message_keys.push(row.text(0)),
        other => return Err(format!("a row has the unknown part {other}")),
    }
    Ok(())
}

fn item(what: &str, text: &str) -> Result<WorkItem, String> {
    json::decode_work_item(text).map_err(|error| format!("{what} that waits for it: {error}"))
}

/// The rows of an import.
#[derive(Debug, Clone)]
pub struct ImportRows {
    /// The instance.
    pub instance: String,
    /// Its row.
    pub row: Option<SnapshotRow>,
    /// Its executions, ascending.
    pub executions: Vec<ImportExecution>,
    /// Its keys.
    pub keys: Vec<SnapshotKey>,
    /// The changes of the current execution to the keys.
    pub changed_keys: Vec<SnapshotKeyChange>,
    /// Its messages, in the order of delivery.
    pub messages: Vec<ImportMessage>,
    /// Its activities, oldest first.
    pub activities: Vec<ImportActivity>,
    /// Its hold.
    pub hold: Option<SnapshotHold>,
    /// The keys of messages that it has taken.
    pub message_keys: Vec<String>,
    /// The record in the audit.
    pub audit: AuditEntry,
}

/// An execution to import.
#[derive(Debug, Clone)]
pub struct ImportExecution {
    /// The number of the execution.
    pub execution_id: u64,
    /// Its status.
    pub status: String,
    /// Its output.
    pub output: Option<String>,
    /// When it began.
    pub started_at: u64,
    /// When it ended.
    pub completed_at: Option<u64>,
    /// Its pinned version.
    pub pin: Option<Version>,
    /// The id of the event that ends it.
    pub terminal_event_id: Option<u64>,
    /// Its events.
    pub history: Vec<HistoryRow>,
}

impl ImportExecution {
    /// The id of its last event, 0 without events.
    pub fn last_event_id(&self) -> u64 {
        self.history.last().map_or(0, |event| event.event_id)
    }
}

/// A message to import.
#[derive(Debug, Clone)]
pub struct ImportMessage {
    /// The message.
    pub row: MessageRow,
    /// The time that orders the message among others.
    pub available_at: u64,
    /// The time from which on it can be fetched.
    pub visible_at: u64,
    /// The number of deliveries.
    pub attempt_count: u32,
}

/// An activity to import.
#[derive(Debug, Clone)]
pub struct ImportActivity {
    /// The activity.
    pub row: ActivityRow,
    /// The time from which on it can be fetched.
    pub visible_at: u64,
    /// The number of deliveries.
    pub attempt_count: u32,
    /// The number of failures that its handler has reported.
    pub failures: u32,
    /// The text of the last reported failure.
    pub last_error: Option<String>,
}

impl ImportRows {
    /// The rows of a snapshot, or the reason why the snapshot is refused.
    pub fn of(snapshot: &InstanceSnapshot, audit: &AuditEntry) -> Result<Self, ProviderError> {
        let id = &snapshot.instance_id;
        snapshot.check().map_err(|reason| {
            ProviderError::permanent(IMPORT, format!("the snapshot of instance '{id}' is refused: {reason}"))
        })?;
        let executions = snapshot.executions.iter().map(|execution| {
            Ok(ImportExecution {
                execution_id: execution.execution_id,
                status: execution.status.clone(),
                output: execution.output.clone(),
                started_at: execution.started_at,
                completed_at: execution.completed_at,
                pin: execution.pinned_version.as_deref().and_then(|pin| Version::parse(pin).ok()),
                terminal_event_id: execution
                    .events
                    .iter()
                    .find(|event| event.is_terminal())
                    .map(|event| event.event_id),
                history: history_rows(IMPORT, &execution.events)?,
            })
        });
        let messages = snapshot.messages.iter().map(|message| {
            Ok(ImportMessage {
                row: message_row(IMPORT, &message.item)?,
                available_at: message.available_at,
                visible_at: message.visible_at,
                attempt_count: message.attempt_count,
            })
        });
        let activities = snapshot.activities.iter().map(|activity| {
            Ok(ImportActivity {
                row: activity_row(IMPORT, &activity.item)?,
                visible_at: activity.visible_at,
                attempt_count: activity.attempt_count,
                failures: activity.failures,
                last_error: activity.last_error.clone(),
            })
        });
        Ok(Self {
            instance: id.clone(),
            row: snapshot.row.clone(),
            executions: executions.collect::<Result<_, ProviderError>>()?,
            keys: snapshot.keys.clone(),
            changed_keys: snapshot.changed_keys.clone(),
            messages: messages.collect::<Result<_, ProviderError>>()?,
            activities: activities.collect::<Result<_, ProviderError>>()?,
            hold: snapshot.hold.clone(),
            message_keys: snapshot.message_keys.clone(),
            audit: audit.clone(),
        })
    }

    /// The bytes of the texts that the import writes.
    pub fn bytes(&self) -> usize {
        let events = self.executions.iter().flat_map(|one| &one.history).map(|event| event.event_data.len());
        let messages = self.messages.iter().map(|message| message.row.work_item.len());
        let activities = self.activities.iter().map(|activity| activity.row.work_item.len());
        let keys = self.keys.iter().map(|key| key.key.len() + key.value.len());
        let message_keys = self.message_keys.iter().map(String::len);
        events.chain(messages).chain(activities).chain(keys).chain(message_keys).sum()
    }
}
