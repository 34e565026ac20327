//! Exports and imports of instances.
//!
//! An export reads the partition of the instance twice: if a document has another version at the second read, or the instance has
//! an undelivered message to another instance, the export begins again. An import is a turn that writes all documents of the
//! instance under its version, in one batch or staged, as a commit does. The audit is another partition, so its record follows.

use crate::activity;
use crate::client::json;
use crate::commit::Applied;
use crate::document::{
    Address, Change, Committed, Content, Events, Execution, ExecutionDocument, Held, Instance, Item,
    Override, Pair, Row, Value, Versioned,
};
use crate::error::{contended, damaged};
use crate::history::{READS, documents, execution_document, visible_executions};
use crate::hold::is_held;
use crate::ids::{self, MessageKey, Uid};
use crate::load::needs_recovery;
use crate::message::{self, Waiting, counted};
use crate::once::Key;
use crate::prepare::{Body, Prepared, document};
use crate::record::LARGEST_NEAR_OUTPUT;
use crate::sql;
use crate::staging::{Document, Turn};
use crate::store::Store;
use crate::tally::Counts;
use crate::visible::Visibility;
use outlast_model::{
    InstanceSnapshot, SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey, SnapshotKeyChange,
    SnapshotMessage, SnapshotRow, WorkItem,
};
use outlast_provider::{ErrorClass, ExecutionMetadata, ExportOutcome, ImportOutcome, ProviderError};
use outlast_provider_kit::transfer::ImportExecution;
use outlast_provider_kit::{CommitPlan, ImportRows, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const EXPORT: &str = "export_instance";
const IMPORT: &str = "import_instance";
const UNSTARTED: &str = "list_unstarted";

/// Attempts to write an instance that others change.
const ATTEMPTS: usize = 8;

/// The documents of an instance, by kind.
#[derive(Default)]
struct Partition {
    /// The versions of all documents.
    versions: BTreeMap<String, String>,
    has_instance: bool,
    has_intents: bool,
    messages: Vec<Versioned<Item>>,
    activities: Vec<Versioned<Item>>,
    events: Vec<Events>,
    executions: Vec<ExecutionDocument>,
    pairs: Vec<Pair>,
    message_keys: Vec<Key>,
}

impl Partition {
    fn of(all: Vec<serde_json::Value>) -> Result<Self, ProviderError> {
        let mut partition = Self::default();
        let failed = |error| damaged(EXPORT, error);
        for document in all {
            let text = |name: &str| document[name].as_str().unwrap_or_default().to_string();
            partition.versions.insert(text("id"), text("_etag"));
            match text("t").as_str() {
                "i" => partition.has_instance = true,
                "o" => partition.has_intents = true,
                "m" => partition.messages.push(serde_json::from_value(document).map_err(failed)?),
                "a" => partition.activities.push(serde_json::from_value(document).map_err(failed)?),
                "h" => partition.events.push(serde_json::from_value(document).map_err(failed)?),
                "x" => partition.executions.push(serde_json::from_value(document).map_err(failed)?),
                "k" => partition.pairs.push(serde_json::from_value(document).map_err(failed)?),
                "n" => partition.message_keys.push(serde_json::from_value(document).map_err(failed)?),
                _ => {}
            }
        }
        Ok(partition)
    }
}

impl Store {
    async fn partition(&self, address: &Address) -> Result<Partition, ProviderError> {
        Partition::of(self.client.query(EXPORT, &address.partition, sql::ALL, &[]).await?)
    }

    /// All documents of an instance, as a snapshot.
    pub(crate) async fn export_instance(&self, instance: &str) -> Result<ExportOutcome, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..READS {
            let before = self.partition(&address).await?;
            let read = self.read_instance(EXPORT, &address).await?;
            let after = self.partition(&address).await?;
            let is_same = before.versions == after.versions
                && read.as_ref().is_none_or(|read| before.versions.get(ids::INSTANCE) == Some(&read.etag));
            if !is_same || before.has_intents {
                continue;
            }
            if read.is_none() && before.has_instance {
                // A deletion is being completed.
                return Ok(ExportOutcome::NotFound);
            }
            let document =
                read.map_or_else(|| Instance::skeleton(&address, Uid::default()), |read| read.document);
            let Some(snapshot) = snapshot(&address, &document, before)? else { continue };
            return Ok(match snapshot.is_empty() {
                true => ExportOutcome::NotFound,
                false => ExportOutcome::Exported(Box::new(snapshot)),
            });
        }
        Ok(ExportOutcome::Changed)
    }

    /// Stores an instance, unless its id is taken.
    pub(crate) async fn import_instance(
        self: &Arc<Self>,
        rows: &ImportRows,
    ) -> Result<ImportOutcome, ProviderError> {
        let outcome = self.begin_import(rows).await?;
        if outcome == ImportOutcome::Imported
            && let Err(error) = self.append_audit(&rows.audit).await
        {
            let message = format!(
                "instance '{}' is imported, but the audit has no record of it: {error}",
                rows.instance
            );
            return Err(ProviderError::permanent(IMPORT, message));
        }
        Ok(outcome)
    }

    async fn begin_import(self: &Arc<Self>, rows: &ImportRows) -> Result<ImportOutcome, ProviderError> {
        let address = Address::of(&rows.instance);
        for _ in 0..ATTEMPTS {
            let read = self.read_instance(IMPORT, &address).await?;
            if self.is_taken(IMPORT, &address, read.as_ref().map(|read| &read.document)).await? {
                return Ok(ImportOutcome::Taken);
            }
            let mut current = match read {
                Some(read) => read,
                None => match self.created(&address).await? {
                    Some(created) => created,
                    None => continue,
                },
            };
            if needs_recovery(&current.document) {
                let Some(recovered) = self.recover(IMPORT, &address, current).await? else { continue };
                current = recovered;
            }
            let prepared = self.prepare_import(&address, &current.document, rows)?;
            if let Applied::Yes { etags, .. } = self.apply(&address, &current, &prepared, Vec::new()).await? {
                self.tails.forget(&address.id);
                self.committed(&address, &prepared, &plan(rows)?, &etags, false).await;
                return Ok(ImportOutcome::Imported);
            }
        }
        Err(contended(IMPORT, &address.id))
    }

    /// The documents of an import.
    fn prepare_import(
        &self,
        address: &Address,
        before: &Instance,
        rows: &ImportRows,
    ) -> Result<Prepared, ProviderError> {
        let mut instance = before.clone();
        let (rev, write) = (instance.marks().next_rev(), self.uid());
        instance.lock = None;
        let mut creates: Vec<Document<Body>> = Vec::new();
        let mut events: Option<String> = None;
        for execution in &rows.executions {
            instance.executions += 1;
            instance.events += execution.history.len() as u64;
            for part in documents(
                address,
                execution.execution_id,
                &execution.history,
                Some(rev),
                write,
                self.limits.bytes,
            ) {
                events.get_or_insert_with(|| part.id.clone());
                creates.push(document(&part.id, Body::Json(json(&part)?), &part));
            }
        }
        for stored in place_executions(address, &mut instance, &rows.executions, rev, write) {
            creates.push(document(&stored.id, Body::Json(json(&stored)?), &stored));
        }
        self.record_import(&mut instance, rows);
        let (messages, activities) = self.imported_items(address, &mut instance, rows, rev, write);
        for item in messages.iter().chain(&activities) {
            creates.push(document(&item.id, Body::Item(Box::new(item.clone())), item));
        }
        for key in &rows.message_keys {
            let key = Key::new(address, key, Some(rev), write);
            creates.push(document(&key.id, Body::Json(json(&key)?), &key));
        }
        let pairs = imported_pairs(address, &mut instance, rows, rev, write).into_iter().map(|pair| {
            let (id, sized) = (pair.id.clone(), pair.clone());
            document(&id, Body::Pair(Box::new(pair)), &sized)
        });
        let turn = Turn {
            key_values: pairs.collect(),
            creates,
            cancelled: Vec::new(),
            consumed: Vec::new(),
            instance_bytes: serde_json::to_string(&instance).map_or(0, |text| text.len()) + 200,
        };
        Ok(Prepared {
            counted: Counts::of(&instance).since(Counts::of(before)),
            instance,
            rev,
            write,
            turn,
            events,
            activities,
            messages,
            intents: Vec::new(),
            consumed: Vec::new(),
            cancelled: Vec::new(),
            cancelled_elsewhere: Vec::new(),
        })
    }

    /// Records row, status, parent and hold in the instance.
    fn record_import(&self, instance: &mut Instance, rows: &ImportRows) {
        if let Some(row) = &rows.row {
            let last = rows.executions.last();
            instance.ct = Some(self.time.sequence());
            instance.par.clone_from(&row.parent_instance_id);
            instance.st = last.map(|last| last.status.clone());
            instance.row = Some(Row {
                name: row.orchestration_name.clone(),
                version: row.orchestration_version.clone(),
                current: row.current_execution_id,
                created_at: row.created_at,
                updated_at: row.updated_at,
                custom_status: row.custom_status.clone(),
                custom_status_version: row.custom_status_version,
                completed_at: last.and_then(|last| last.completed_at),
            });
        }
        instance.hold = rows.hold.as_ref().map(|hold| Held {
            kind: hold.kind.clone(),
            actor: hold.actor.clone(),
            reason: hold.reason.clone(),
            at: hold.held_at_ms,
        });
    }

    /// Messages and activities. The instance keeps the deliveries and the delays of messages.
    fn imported_items(
        &self,
        address: &Address,
        instance: &mut Instance,
        rows: &ImportRows,
        rev: u64,
        write: Uid,
    ) -> (Vec<Item>, Vec<Item>) {
        let mut messages = Vec::new();
        for message in &rows.messages {
            let (key, sequence) = (MessageKey::Enqueued(self.uid()), self.time.sequence());
            let mut item =
                message::document(address, &key, &message.row, message.available_at, sequence, write);
            item.rev = Some(rev);
            let at = Some(message.visible_at).filter(|at| *at != message.available_at);
            let found = Override { attempts: message.attempt_count, at };
            if found != Override::default() {
                instance.overrides.insert(item.id.clone(), found);
            }
            messages.push(item);
        }
        let orchestration = instance.row.as_ref().map(|row| (row.name.clone(), row.version.clone()));
        let (mut activities, mut used) = (Vec::new(), BTreeSet::new());
        for activity in &rows.activities {
            let (row, sequence) = (&activity.row, self.time.sequence());
            let mut item =
                activity::document(address, row, activity.visible_at, sequence, write, orchestration.clone());
            if !used.insert(item.id.clone()) {
                item.id = ids::activity(row.execution_id, row.activity_id, Some(self.uid()));
            }
            item.rev = Some(rev);
            item.attempts = activity.attempt_count;
            if activity.failures > 0 || activity.last_error.is_some() {
                item.failures = Some((activity.failures, activity.last_error.clone()));
            }
            activities.push(item);
        }
        (messages, activities)
    }

    /// Ids without an instance for which messages wait.
    pub(crate) async fn unstarted(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, ProviderError> {
        let waiting: Vec<Item> = self.client.query_all(UNSTARTED, sql::WAITING, &[], usize::MAX).await?;
        let waiting = waiting.iter().filter(|item| item.t == "m").filter_map(Item::address);
        let waiting: BTreeMap<String, Address> =
            waiting.map(|address| (address.id.clone(), address)).collect();
        let mut found = Vec::new();
        for (id, address) in waiting {
            if found.len() == limit {
                break;
            }
            if after.is_some_and(|after| id.as_str() <= after) {
                continue;
            }
            let read = self.read_instance(UNSTARTED, &address).await?;
            if read.is_none_or(|read| read.document.row.is_none()) {
                found.push(id);
            }
        }
        Ok(found)
    }
}

/// The commit to which an import corresponds, for the update of the state of this process.
fn plan(rows: &ImportRows) -> Result<CommitPlan, ProviderError> {
    let execution_id = rows.executions.last().map_or(1, |execution| execution.execution_id);
    let metadata = ExecutionMetadata {
        orchestration_name: rows.row.as_ref().map(|row| row.orchestration_name.clone()),
        orchestration_version: rows.row.as_ref().map(|row| row.orchestration_version.clone()),
        ..ExecutionMetadata::default()
    };
    CommitPlan::new(execution_id, &[], &[], &[], metadata, Vec::new())
}

/// Puts the newest execution into the instance, and returns the documents of the others and of a large output.
fn place_executions(
    address: &Address,
    instance: &mut Instance,
    executions: &[ImportExecution],
    rev: u64,
    write: Uid,
) -> Vec<ExecutionDocument> {
    let mut stored = Vec::new();
    for (imported, n) in executions.iter().zip(1..) {
        let mut execution = Execution::new(imported.execution_id, imported.started_at);
        execution.append(&imported.history);
        execution.status.clone_from(&imported.status);
        execution.output.clone_from(&imported.output);
        execution.completed_at = imported.completed_at;
        execution.pinned = imported.pin.as_ref().map(ToString::to_string);
        let is_newest = n == executions.len();
        let is_far = execution.output.as_ref().is_some_and(|output| output.len() > LARGEST_NEAR_OUTPUT);
        if !is_newest || is_far {
            stored.push(execution_document(address, execution.clone(), Some(rev), write));
        }
        if is_newest {
            if is_far {
                execution.output = None;
                execution.output_is_far = true;
            }
            instance.latest = Some(execution);
        }
    }
    stored
}

/// The documents of keys and of their changes.
fn imported_pairs(
    address: &Address,
    instance: &mut Instance,
    rows: &ImportRows,
    rev: u64,
    write: Uid,
) -> Vec<Pair> {
    let mut contents: BTreeMap<&str, Content> = BTreeMap::new();
    for key in &rows.keys {
        instance.kv.changes += 1;
        contents.entry(&key.key).or_default().base = Some(Value {
            value: key.value.clone(),
            updated_at: key.last_updated_at_ms,
            nth: instance.kv.changes,
        });
    }
    for key in &rows.changed_keys {
        instance.kv.changes += 1;
        contents.entry(&key.key).or_default().change = Some(Change {
            value: key.value.clone(),
            updated_at: key.last_updated_at_ms,
            nth: instance.kv.changes,
            epoch: instance.kv.epoch,
        });
    }
    let pair = |(key, content): (&str, Content)| Pair {
        id: ids::key_value(key),
        partition: address.partition.clone(),
        t: "k".to_string(),
        rev: Some(rev),
        w: write,
        key: key.to_string(),
        content,
        committed: Some(Box::new(Committed { rev: None, content: None })),
    };
    contents.into_iter().map(pair).collect()
}

/// The snapshot of a partition; `None` if a document is newer than the instance.
fn snapshot(
    address: &Address,
    instance: &Instance,
    partition: Partition,
) -> Result<Option<InstanceSnapshot>, ProviderError> {
    let id = &address.id;
    let Some(mut messages) = counted(instance, partition.messages) else { return Ok(None) };
    messages.sort_by_key(|message| (message.item.visible_at, message.item.sequence));
    let Some(mut activities) = counted(instance, partition.activities) else { return Ok(None) };
    activities.sort_by_key(|activity| activity.item.sequence);
    let hold = instance.hold.as_ref().filter(|_| is_held(instance, &messages));
    let hold = hold.map(|held| SnapshotHold {
        kind: held.kind.clone(),
        actor: held.actor.clone(),
        reason: held.reason.clone(),
        held_at_ms: held.at,
    });
    let Some(executions) = executions(id, instance, partition.executions, partition.events)? else {
        return Ok(None);
    };
    let Some((keys, changed_keys)) = keys(instance, partition.pairs) else { return Ok(None) };
    let Some(message_keys) = message_keys(instance, &partition.message_keys)? else { return Ok(None) };
    let messages = messages.iter().map(|message| {
        Ok(SnapshotMessage {
            item: item(id, message, rows::decode_message)?,
            available_at: message.item.visible_at,
            visible_at: message.visible_at,
            attempt_count: message.attempts,
        })
    });
    let activities = activities.iter().map(|activity| {
        let (failures, last_error) = activity.item.failures.clone().unwrap_or_default();
        Ok(SnapshotActivity {
            item: item(id, activity, rows::decode_activity)?,
            visible_at: activity.item.visible_at,
            attempt_count: activity.item.attempts,
            failures,
            last_error,
        })
    });
    Ok(Some(InstanceSnapshot {
        instance_id: id.clone(),
        row: instance.row.as_ref().map(|row| SnapshotRow {
            orchestration_name: row.name.clone(),
            orchestration_version: row.version.clone(),
            current_execution_id: row.current,
            parent_instance_id: instance.par.clone(),
            custom_status: row.custom_status.clone(),
            custom_status_version: row.custom_status_version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }),
        executions,
        keys,
        changed_keys,
        messages: messages.collect::<Result<_, ProviderError>>()?,
        activities: activities.collect::<Result<_, ProviderError>>()?,
        hold,
        message_keys,
    }))
}

fn undecodable(reason: String) -> ProviderError {
    ProviderError::permanent(EXPORT, reason).of_class(ErrorClass::Damaged)
}

fn item(
    id: &str,
    waiting: &Waiting,
    decode: impl Fn(&str, &str) -> Result<WorkItem, String>,
) -> Result<WorkItem, ProviderError> {
    decode(id, &waiting.item.d).map_err(|reason| {
        undecodable(format!("instance '{id}' cannot be exported: an item that waits: {reason}"))
    })
}

fn executions(
    id: &str,
    instance: &Instance,
    stored: Vec<ExecutionDocument>,
    events: Vec<Events>,
) -> Result<Option<Vec<SnapshotExecution>>, ProviderError> {
    let Some(stored) = visible_executions(instance, stored) else { return Ok(None) };
    let mut executions: BTreeMap<u64, Execution> =
        stored.into_iter().map(|document| (document.execution_id, document.execution)).collect();
    if let Some(mut latest) = instance.latest.clone() {
        if latest.output_is_far {
            latest.output = executions.remove(&latest.execution_id).and_then(|far| far.output);
        }
        executions.insert(latest.execution_id, latest);
    }
    let marks = instance.marks();
    let mut texts: BTreeMap<u64, BTreeMap<u64, String>> = BTreeMap::new();
    for document in events {
        match marks.visibility(&document.id, document.rev) {
            Visibility::Visible => {
                let events = document.d.into_iter().map(|event| (event.event_id, event.text));
                texts.entry(document.execution_id).or_default().extend(events);
            }
            Visibility::Hidden => {}
            Visibility::MarksAreStale => return Ok(None),
        }
    }
    let executions = executions.into_values().filter(|execution| !execution.has_events_only);
    let exported = executions.map(|execution| {
        let texts = texts.remove(&execution.execution_id).unwrap_or_default();
        let events = rows::decode_history(id, execution.execution_id, texts.values().map(String::as_str));
        Ok(SnapshotExecution {
            execution_id: execution.execution_id,
            status: execution.status,
            output: execution.output,
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            pinned_version: execution.pinned,
            events: events.map_err(undecodable)?,
        })
    });
    exported.collect::<Result<_, ProviderError>>().map(Some)
}

/// The keys of messages in ascending order.
fn message_keys(instance: &Instance, stored: &[Key]) -> Result<Option<Vec<String>>, ProviderError> {
    let (marks, mut keys) = (instance.marks(), Vec::new());
    for key in stored {
        match marks.visibility(&key.id, key.rev) {
            Visibility::Visible => {}
            Visibility::Hidden => continue,
            Visibility::MarksAreStale => return Ok(None),
        }
        let text = key.text();
        keys.push(text.ok_or_else(|| {
            undecodable("an older build has stored a long key of a message without its text".to_string())
        })?);
    }
    keys.sort();
    Ok(Some(keys))
}

type Keys = (Vec<SnapshotKey>, Vec<SnapshotKeyChange>);

fn keys(instance: &Instance, pairs: Vec<Pair>) -> Option<Keys> {
    let (marks, mut keys, mut changed_keys) = (instance.marks(), Vec::new(), Vec::new());
    for pair in pairs {
        let Some(content) = pair.counted(&marks).ok()? else { continue };
        let state = content.state(&instance.kv);
        keys.extend(state.base.map(|base| SnapshotKey {
            key: pair.key.clone(),
            value: base.value,
            last_updated_at_ms: base.updated_at,
        }));
        changed_keys.extend(state.change.map(|(value, last_updated_at_ms)| SnapshotKeyChange {
            key: pair.key.clone(),
            value,
            last_updated_at_ms,
        }));
    }
    keys.sort_by(|a, b| a.key.cmp(&b.key));
    changed_keys.sort_by(|a, b| a.key.cmp(&b.key));
    Some((keys, changed_keys))
}
