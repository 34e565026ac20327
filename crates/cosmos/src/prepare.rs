//! The documents that a turn writes.

use crate::activity;
use crate::client::json;
use crate::document::{Address, Execution, Instance, Item, Pair, Row, Target, Versioned};
use crate::history::{documents, execution_document};
use crate::ids::{self, MessageKey, SentKey, Uid};
use crate::kv;
use crate::message;
use crate::number::{indexed, parameter};
use crate::slots::slot_of;
use crate::sql;
use crate::staging::{Document, Turn};
use crate::store::Store;
use outlast_provider::{ProviderError, ScheduledActivityIdentifier, saturating_ms};
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::{ActivityRow, CommitPlan, KvChange, is_final};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const ACK: &str = crate::commit::ACK;

/// An output above this size is not in the document of the instance, which every turn writes.
const LARGEST_NEAR_OUTPUT: usize = 64 * 1024;

/// The content of a document.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Json(Value),
    Item(Box<Item>),
    Pair(Box<Pair>),
    /// The document is removed if it is the one that was read.
    Remove {
        id: String,
        etag: String,
    },
}

/// The documents of a turn, and what its commit changes in this process.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// The instance after the turn, with the marks from before it.
    pub(crate) instance: Instance,
    pub(crate) rev: u64,
    pub(crate) write: Uid,
    pub(crate) turn: Turn<Body>,
    /// The first document of events.
    pub(crate) events: Option<String>,
    pub(crate) activities: Vec<Item>,
    pub(crate) messages: Vec<Item>,
    pub(crate) intents: Vec<Item>,
    pub(crate) consumed: Vec<String>,
    pub(crate) cancelled: Vec<String>,
    pub(crate) cancelled_elsewhere: Vec<ScheduledActivityIdentifier>,
}

fn document(id: &str, body: Body, size: &impl Serialize) -> Document<Body> {
    // A document that cannot be written as JSON is refused when it is sent.
    let bytes = serde_json::to_string(size).map_or(0, |text| text.len());
    Document { id: id.to_string(), bytes, body }
}

impl Store {
    /// The documents of a turn; `None` if documents are newer than the instance. `taken` are ids of activities that exist.
    pub(crate) async fn prepare(
        &self,
        address: &Address,
        mut instance: Instance,
        plan: &CommitPlan,
        consumed: Vec<String>,
        taken: &HashSet<String>,
        now: u64,
    ) -> Result<Option<Prepared>, ProviderError> {
        let (rev, write) = (instance.marks().next_rev(), self.uid());
        let mut creates: Vec<Document<Body>> = Vec::new();
        let mut removed = consumed.clone();
        let Some(superseded) =
            self.record_execution(address, &mut instance, plan, now, rev, write, &mut creates).await?
        else {
            return Ok(None);
        };
        removed.extend(superseded);
        let Some(pairs) = self.changed_keys(address, &mut instance, plan, now, rev, write).await? else {
            return Ok(None);
        };
        if plan.metadata.status.as_deref().is_some_and(is_final) {
            instance.kv.merge();
        }
        let parts = documents(address, plan.execution_id, &plan.history, Some(rev), write, self.limits.bytes);
        let events = parts.first().map(|part| part.id.clone());
        for part in parts {
            let body = Body::Json(json(&part)?);
            creates.push(document(&part.id, body, &part));
        }
        for id in &consumed {
            instance.overrides.remove(id);
        }
        let outgoing = self.outgoing(address, &instance, plan, taken, now, rev, write);
        for item in outgoing.activities.iter().chain(&outgoing.messages).chain(&outgoing.intents) {
            creates.push(document(&item.id, Body::Item(Box::new(item.clone())), item));
        }
        let cancelled = self.cancelled(address, plan).await?;
        let is_consumed: HashSet<&String> = consumed.iter().collect();
        let cancelled: Vec<Versioned<Item>> =
            cancelled.into_iter().filter(|item| !is_consumed.contains(&item.document.id)).collect();
        let removals = cancelled.iter().map(|Versioned { etag, document: item }| {
            let body = Body::Remove { id: item.id.clone(), etag: etag.clone() };
            Document { id: item.id.clone(), bytes: 0, body }
        });
        let key_values = pairs.into_iter().map(|pair| {
            let id = pair.id.clone();
            let sized = pair.clone();
            document(&id, Body::Pair(Box::new(pair)), &sized)
        });
        let turn = Turn {
            instance_bytes: serde_json::to_string(&instance).map_or(0, |text| text.len()) + 200,
            creates,
            key_values: key_values.collect(),
            cancelled: removals.collect(),
            consumed: removed,
        };
        let elsewhere = plan.cancelled.iter().filter(|cancelled| cancelled.instance != address.id);
        Ok(Some(Prepared {
            instance,
            rev,
            write,
            turn,
            events,
            activities: outgoing.activities,
            messages: outgoing.messages,
            intents: outgoing.intents,
            consumed,
            cancelled: cancelled.into_iter().map(|item| item.document.id).collect(),
            cancelled_elsewhere: elsewhere.cloned().collect(),
        }))
    }

    /// Records row, execution and status. Returns the ids of documents that the turn replaces; `None` if documents are newer
    /// than the instance.
    #[allow(clippy::too_many_arguments)]
    async fn record_execution(
        &self,
        address: &Address,
        instance: &mut Instance,
        plan: &CommitPlan,
        now: u64,
        rev: u64,
        write: Uid,
        creates: &mut Vec<Document<Body>>,
    ) -> Result<Option<Vec<String>>, ProviderError> {
        let metadata = &plan.metadata;
        if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
            if instance.row.is_none() {
                instance.ct = Some(self.time.sequence());
                instance.par.clone_from(&metadata.parent_instance_id);
            }
            let created = || Row { current: plan.execution_id, created_at: now, ..Row::default() };
            let row = instance.row.get_or_insert_with(created);
            row.name.clone_from(name);
            row.version.clone_from(version);
        }
        if let Some(row) = &mut instance.row {
            row.current = row.current.max(plan.execution_id);
            row.updated_at = now;
            if let Some(status) = &plan.custom_status {
                row.custom_status.clone_from(status);
                row.custom_status_version += 1;
            }
        }
        let mut superseded = Vec::new();
        let mut is_new = false;
        let latest = instance.latest.as_ref().map(|latest| latest.execution_id);
        let is_latest = latest.is_none_or(|latest| plan.execution_id >= latest);
        let mut execution = match &instance.latest {
            Some(latest) if latest.execution_id == plan.execution_id => latest.clone(),
            _ if is_latest && !instance.odd => {
                is_new = true;
                Execution::new(plan.execution_id, now)
            }
            _ => {
                let found = self.execution_documents(ACK, address, instance, plan.execution_id).await?;
                let Some(found) = found else { return Ok(None) };
                superseded.extend(found.iter().map(|document| document.id.clone()));
                match found.into_iter().next_back().map(|document| document.execution) {
                    Some(stored) if stored.has_events_only => {
                        is_new = true;
                        Execution {
                            last_event_id: stored.last_event_id,
                            events: stored.events,
                            bytes: stored.bytes,
                            ..Execution::new(plan.execution_id, now)
                        }
                    }
                    Some(stored) => stored,
                    None => {
                        is_new = true;
                        Execution::new(plan.execution_id, now)
                    }
                }
            }
        };
        if !self.check_new_events(ACK, address, instance, &execution, &plan.history).await? {
            return Ok(None);
        }
        execution.append(&plan.history);
        instance.events += plan.history.len() as u64;
        if is_new {
            instance.executions += 1;
        }
        if let Some(status) = &metadata.status {
            if execution.output_is_far && latest == Some(plan.execution_id) {
                let found = self.execution_documents(ACK, address, instance, plan.execution_id).await?;
                let Some(found) = found else { return Ok(None) };
                superseded.extend(found.into_iter().map(|document| document.id));
            }
            execution.status.clone_from(status);
            execution.output.clone_from(&metadata.output);
            execution.output_is_far = false;
            execution.completed_at = is_final(status).then_some(now);
        }
        if let Some(pin) = &metadata.pinned_duroxide_version {
            execution.pinned = Some(pin.to_string());
        }
        let mut stored = Vec::new();
        if is_latest {
            let before = instance.latest.clone().filter(|before| before.execution_id != plan.execution_id);
            if let Some(before) = before {
                if before.output_is_far {
                    let found = self.execution_documents(ACK, address, instance, before.execution_id).await?;
                    let Some(found) = found else { return Ok(None) };
                    superseded.extend(found.into_iter().map(|document| document.id));
                }
                stored.extend(self.execution(ACK, address, instance, before.execution_id).await?);
            }
            let is_far = execution.output.as_ref().is_some_and(|output| output.len() > LARGEST_NEAR_OUTPUT);
            if is_far {
                stored.push(execution.clone());
                execution.output = None;
                execution.output_is_far = true;
            }
            instance.latest = Some(execution.clone());
        } else {
            stored.push(execution.clone());
        }
        for execution in stored {
            let stored = execution_document(address, execution, Some(rev), write);
            let body = Body::Json(json(&stored)?);
            creates.push(document(&stored.id, body, &stored));
        }
        self.record_status(address, instance, &execution).await?;
        Ok(Some(superseded))
    }

    /// Repeats the status of the current execution for queries.
    async fn record_status(
        &self,
        address: &Address,
        instance: &mut Instance,
        committed: &Execution,
    ) -> Result<(), ProviderError> {
        let Some(current) = instance.row.as_ref().map(|row| row.current) else { return Ok(()) };
        let execution = match committed.execution_id == current {
            true => Some(committed.clone()),
            false => self.execution(ACK, address, instance, current).await?,
        };
        let unknown = || "Unknown".to_string();
        instance.st = Some(execution.as_ref().map_or_else(unknown, |execution| execution.status.clone()));
        if let Some(row) = &mut instance.row {
            row.completed_at = execution.and_then(|execution| execution.completed_at);
        }
        Ok(())
    }

    async fn changed_keys(
        &self,
        address: &Address,
        instance: &mut Instance,
        plan: &CommitPlan,
        now: u64,
        rev: u64,
        write: Uid,
    ) -> Result<Option<Vec<Pair>>, ProviderError> {
        if plan.kv.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let only_clears = plan.kv.iter().all(|change| matches!(change, KvChange::ClearAll));
        let stored: Vec<Versioned<Pair>> = match only_clears {
            true => Vec::new(),
            false => self.client.query(ACK, &address.partition, sql::PAIRS, &[]).await?,
        };
        let stored: HashMap<String, Versioned<Pair>> =
            stored.into_iter().map(|pair| (pair.document.id.clone(), pair)).collect();
        Ok(kv::changed(address, instance, &plan.kv, &stored, now, rev, write).ok())
    }

    /// The stored activities that the turn cancels.
    async fn cancelled(
        &self,
        address: &Address,
        plan: &CommitPlan,
    ) -> Result<Vec<Versioned<Item>>, ProviderError> {
        let mut by_execution: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
        for cancelled in plan.cancelled.iter().filter(|cancelled| cancelled.instance == address.id) {
            by_execution.entry(cancelled.execution_id).or_default().push(parameter(cancelled.activity_id));
        }
        let mut found = Vec::new();
        for (execution_id, activities) in by_execution {
            let parameters =
                [("@execution", parameter(execution_id)), ("@activities", Value::from(activities))];
            let more: Vec<Versioned<Item>> =
                self.client.query(ACK, &address.partition, sql::SCHEDULED, &parameters).await?;
            found.extend(more);
        }
        Ok(found)
    }

    /// Activities, own messages and intents.
    #[allow(clippy::too_many_arguments)]
    fn outgoing(
        &self,
        address: &Address,
        instance: &Instance,
        plan: &CommitPlan,
        taken: &HashSet<String>,
        now: u64,
        rev: u64,
        write: Uid,
    ) -> Outgoing {
        let mut outgoing = Outgoing::default();
        let orchestration = instance.row.as_ref().map(|row| (row.name.clone(), row.version.clone()));
        let mut nth = 0;
        let intent = |nth: u32, target: Target, d: String, visible: u64, sequence: u64| Item {
            id: ids::intent(rev, nth),
            partition: address.partition.clone(),
            t: "o".to_string(),
            iid: address.long_id(),
            slot: slot_of(&address.id),
            at: Some(indexed(now.saturating_add(saturating_ms(self.config.reconciler_age_threshold)))),
            sequence,
            rev: Some(rev),
            w: write,
            d,
            visible_at: visible,
            to: Some(target),
            ..Item::default()
        };
        let mut used: HashSet<String> = taken.clone();
        for row in plan.activities.iter().filter(|row| !is_cancelled(plan, row)) {
            let sequence = self.time.sequence();
            if row.instance_id != address.id {
                let id = ids::activity(row.execution_id, row.activity_id, Some(self.uid()));
                let target = Target { instance: row.instance_id.clone(), id, is_activity: true };
                outgoing.intents.push(intent(nth, target, row.work_item.clone(), now, sequence));
                nth += 1;
                continue;
            }
            let mut item = activity::document(address, row, now, sequence, write, orchestration.clone());
            if !used.insert(item.id.clone()) {
                item.id = ids::activity(row.execution_id, row.activity_id, Some(self.uid()));
            }
            item.rev = Some(rev);
            outgoing.activities.push(item);
        }
        for row in &plan.messages {
            let (visible, sequence) = (visible_at(row, now, None), self.time.sequence());
            if row.instance_id == address.id {
                let key = MessageKey::Arrival(self.uid());
                let mut item = message::document(address, &key, row, visible, sequence, write);
                item.rev = Some(rev);
                outgoing.messages.push(item);
                continue;
            }
            let key = MessageKey::Sent(SentKey { source: instance.uid, rev, nth });
            let target =
                Target { instance: row.instance_id.clone(), id: ids::message(&key), is_activity: false };
            outgoing.intents.push(intent(nth, target, row.work_item.clone(), visible, sequence));
            nth += 1;
        }
        outgoing
    }
}

#[derive(Default)]
struct Outgoing {
    activities: Vec<Item>,
    messages: Vec<Item>,
    intents: Vec<Item>,
}

fn is_cancelled(plan: &CommitPlan, row: &ActivityRow) -> bool {
    plan.cancelled.iter().any(|cancelled| {
        cancelled.instance == row.instance_id
            && cancelled.execution_id == row.execution_id
            && cancelled.activity_id == row.activity_id
    })
}
