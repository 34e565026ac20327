//! Exports and imports of instances.

use crate::queue::Activity;
use crate::rules::TransferRules;
use crate::state::{Changed, Execution, Instance, State, Stored, refuse};
use outlast_provider::model::{
    SnapshotActivity, SnapshotExecution, SnapshotHold, SnapshotKey, SnapshotKeyChange, SnapshotMessage,
    SnapshotRow, json,
};
use outlast_provider::{
    AuditEntry, AuditRecord, ExportOutcome, HeldInstance, Hold, HoldKind, ImportOutcome, InstanceSnapshot,
    ProviderError, WorkItem, WorkNotes,
};
use std::collections::BTreeSet;

const EXPORT: &str = "export_instance";
const IMPORT: &str = "import_instance";

impl State {
    /// Everything that is kept of an instance.
    pub(crate) fn export(&self, instance: &str) -> Result<ExportOutcome, ProviderError> {
        let damaged = |what: &str, error: String| {
            let message = format!("instance '{instance}' cannot be exported: {what}: {error}");
            ProviderError::permanent(EXPORT, message)
        };
        let row = self.instances.get(instance).map(|row| SnapshotRow {
            orchestration_name: row.orchestration_name.clone(),
            orchestration_version: row.orchestration_version.clone(),
            current_execution_id: row.current_execution_id,
            parent_instance_id: row.parent_instance_id.clone(),
            custom_status: row.custom_status.clone(),
            custom_status_version: row.custom_status_version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        });
        let mut executions = Vec::new();
        for (execution_id, execution) in self.executions.get(instance).into_iter().flatten() {
            executions.push(SnapshotExecution {
                execution_id: *execution_id,
                status: execution.status.clone(),
                output: execution.output.clone(),
                started_at: execution.started_at,
                completed_at: execution.completed_at,
                pinned_version: execution.pinned.as_ref().map(ToString::to_string),
                events: self
                    .events(instance, *execution_id)
                    .map_err(|error| damaged("its history", error))?,
            });
        }
        let mut ordinals = self.messages.of_instance(instance, |_| true);
        ordinals.sort_by_key(|ordinal| (self.messages.get(*ordinal).map(|row| row.available_at), *ordinal));
        let mut messages = Vec::new();
        for message in ordinals.iter().filter_map(|ordinal| self.messages.get(*ordinal)) {
            let item = json::decode_work_item(&message.text);
            messages.push(SnapshotMessage {
                item: item.map_err(|error| damaged("a message", error.to_string()))?,
                available_at: message.available_at,
                visible_at: message.visible_at,
                attempt_count: message.attempts,
            });
        }
        let mut activities = Vec::new();
        for activity in self.activities.rows.values().filter(|activity| activity.instance == instance) {
            let item = json::decode_work_item(&activity.text);
            activities.push(SnapshotActivity {
                item: item.map_err(|error| damaged("an activity", error.to_string()))?,
                visible_at: activity.visible_at,
                attempt_count: activity.attempts,
                failures: activity.notes.failures,
                last_error: activity.notes.last_error.clone(),
            });
        }
        let snapshot = InstanceSnapshot {
            instance_id: instance.to_string(),
            row,
            executions,
            keys: self.exported_keys(instance),
            changed_keys: self.exported_changes(instance),
            messages,
            activities,
            hold: self.holds.get(instance).map(|held| SnapshotHold {
                kind: held.hold.kind.to_string(),
                actor: held.hold.actor.clone(),
                reason: held.hold.reason.clone(),
                held_at_ms: held.held_at_ms,
            }),
            message_keys: self.message_keys.get(instance).into_iter().flatten().cloned().collect(),
        };
        match snapshot.is_empty() {
            true => Ok(ExportOutcome::NotFound),
            false => Ok(ExportOutcome::Exported(Box::new(snapshot))),
        }
    }

    fn exported_keys(&self, instance: &str) -> Vec<SnapshotKey> {
        let keys = self.kv_store.get(instance).into_iter().flatten();
        let exported = keys.map(|(key, stored)| SnapshotKey {
            key: key.clone(),
            value: stored.value.clone(),
            last_updated_at_ms: stored.last_updated_at_ms,
        });
        exported.collect()
    }

    fn exported_changes(&self, instance: &str) -> Vec<SnapshotKeyChange> {
        let changes = self.kv_delta.get(instance).into_iter().flatten();
        let exported = changes.map(|(key, change)| SnapshotKeyChange {
            key: key.clone(),
            value: change.value.clone(),
            last_updated_at_ms: change.last_updated_at_ms,
        });
        exported.collect()
    }

    /// Stores a snapshot, unless its id is taken.
    pub(crate) fn import(
        &mut self,
        snapshot: &InstanceSnapshot,
        audit: &AuditEntry,
        now: u64,
    ) -> Result<ImportOutcome, ProviderError> {
        let (rules, id) = (self.rules, snapshot.instance_id.as_str());
        if let Err(reason) = snapshot.check() {
            return refuse(IMPORT, format!("the snapshot of instance '{id}' is refused: {reason}"));
        }
        if rules.import_is_taken(self, id) {
            return Ok(ImportOutcome::Taken);
        }
        self.import_rows(snapshot)?;
        self.import_queues(snapshot)?;
        rules.import_changes(self, snapshot);
        rules.import_message_keys(self, snapshot);
        if let Some(hold) = &snapshot.hold {
            rules.import_hold(self, id, hold);
        }
        rules.audit_import(self, audit, now);
        Ok(ImportOutcome::Imported)
    }

    fn import_rows(&mut self, snapshot: &InstanceSnapshot) -> Result<(), ProviderError> {
        let id = &snapshot.instance_id;
        if let Some(row) = &snapshot.row {
            self.instances_created += 1;
            let instance = Instance {
                orchestration_name: row.orchestration_name.clone(),
                orchestration_version: row.orchestration_version.clone(),
                current_execution_id: row.current_execution_id,
                parent_instance_id: row.parent_instance_id.clone(),
                custom_status: row.custom_status.clone(),
                custom_status_version: row.custom_status_version,
                created_at: row.created_at,
                updated_at: row.updated_at,
                created_nth: self.instances_created,
            };
            self.instances.insert(id.clone(), instance);
        }
        for execution in &snapshot.executions {
            let pinned = execution.pinned_version.as_deref();
            let row = Execution {
                status: execution.status.clone(),
                output: execution.output.clone(),
                started_at: execution.started_at,
                completed_at: execution.completed_at,
                pinned: pinned.and_then(|pin| semver::Version::parse(pin).ok()),
            };
            self.executions.entry(id.clone()).or_default().insert(execution.execution_id, row);
            let stored = self.history.entry((id.clone(), execution.execution_id)).or_default();
            for event in &execution.events {
                let text = json::encode_event(event)
                    .map_err(|error| ProviderError::permanent(IMPORT, error.to_string()))?;
                stored.insert(event.event_id, text);
            }
        }
        let keys = snapshot.keys.iter().map(|key| {
            let stored = Stored { value: key.value.clone(), last_updated_at_ms: key.last_updated_at_ms };
            (key.key.clone(), stored)
        });
        if !snapshot.keys.is_empty() {
            self.kv_store.insert(id.clone(), keys.collect());
        }
        Ok(())
    }

    fn import_queues(&mut self, snapshot: &InstanceSnapshot) -> Result<(), ProviderError> {
        let rules = self.rules;
        let encoded = |item: &WorkItem| {
            json::encode_work_item(item).map_err(|error| ProviderError::permanent(IMPORT, error.to_string()))
        };
        for message in &snapshot.messages {
            let ordinal =
                self.messages.push(&snapshot.instance_id, encoded(&message.item)?, message.available_at);
            self.messages.update(ordinal, |row| {
                row.visible_at = rules.imported_visible_at(message);
                row.fetch_at = row.visible_at;
                row.attempts = rules.imported_deliveries(message.attempt_count);
            });
        }
        for activity in &snapshot.activities {
            let WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } =
                &activity.item
            else {
                continue;
            };
            self.activities.push(Activity {
                text: encoded(&activity.item)?,
                visible_at: activity.visible_at,
                token: None,
                locked_until: 0,
                attempts: rules.imported_deliveries(activity.attempt_count),
                notes: WorkNotes { failures: activity.failures, last_error: activity.last_error.clone() },
                instance: instance.clone(),
                execution_id: *execution_id,
                activity_id: *id,
                session_id: session_id.clone(),
                tag: tag.clone(),
            });
        }
        Ok(())
    }

    /// Keeps the changes of the current execution apart from the keys.
    pub(crate) fn import_changes(&mut self, snapshot: &InstanceSnapshot) {
        let changes = snapshot.changed_keys.iter().map(|change| {
            let changed =
                Changed { value: change.value.clone(), last_updated_at_ms: change.last_updated_at_ms };
            (change.key.clone(), changed)
        });
        if !snapshot.changed_keys.is_empty() {
            self.kv_delta.insert(snapshot.instance_id.clone(), changes.collect());
        }
    }

    /// Holds an imported instance, unless a cancellation waits for it.
    pub(crate) fn import_hold(&mut self, instance: &str, hold: &SnapshotHold) {
        let Some(kind) = HoldKind::from_text(&hold.kind).filter(|_| !self.is_cancelled(instance)) else {
            return;
        };
        let hold_of = Hold { kind, actor: hold.actor.clone(), reason: hold.reason.clone() };
        let held =
            HeldInstance { instance_id: instance.to_string(), hold: hold_of, held_at_ms: hold.held_at_ms };
        self.holds.insert(instance.to_string(), held);
    }

    /// Records the import.
    pub(crate) fn audit_import(&mut self, audit: &AuditEntry, now: u64) {
        let id = self.next_record();
        self.audit.push(AuditRecord { id, at_ms: now, entry: audit.clone() });
    }

    /// Ids that messages wait for and that no instance has.
    pub(crate) fn unstarted(&self, after: Option<&str>, limit: usize) -> Vec<String> {
        let waiting: BTreeSet<&String> = self.messages.iter().map(|message| &message.instance).collect();
        let unstarted = waiting.into_iter().filter(|id| !self.instances.contains_key(*id));
        unstarted.filter(|id| after.is_none_or(|after| id.as_str() > after)).take(limit).cloned().collect()
    }
}
