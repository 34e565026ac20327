//! The documents that a turn writes.

use crate::activity;
use crate::client::json;
use crate::document::{Address, Instance, Item, Pair, Target, Versioned};
use crate::history::documents;
use crate::ids::{self, MessageKey, SentKey, Uid};
use crate::kv;
use crate::message;
use crate::number::{indexed, parameter};
use crate::record::Recording;
use crate::slots::slot_of;
use crate::sql;
use crate::staging::{Document, Turn};
use crate::store::Store;
use crate::tally::Counts;
use outlast_provider::{ProviderError, ScheduledActivityIdentifier, saturating_ms};
use outlast_provider_kit::plan::visible_at;
use outlast_provider_kit::{ActivityRow, CommitPlan, KvChange, is_final};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

const ACK: &str = crate::commit::ACK;

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

/// The documents of a turn, and the changes of its commit in this process.
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
    /// The change of the store's numbers.
    pub(crate) counted: Counts,
}

pub(crate) fn document(id: &str, body: Body, size: &impl Serialize) -> Document<Body> {
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
        let before = Counts::of(&instance);
        let recording = Recording { address, plan, now, rev, write };
        let Some(recorded) = self.record_execution(&recording, &mut instance).await? else { return Ok(None) };
        let mut creates: Vec<Document<Body>> = Vec::new();
        for stored in recorded.stored {
            let body = Body::Json(json(&stored)?);
            creates.push(document(&stored.id, body, &stored));
        }
        let mut removed = consumed.clone();
        removed.extend(recorded.superseded);
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
            counted: Counts::of(&instance).since(before),
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
            since: Some(indexed(now)),
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
                let key = MessageKey::Enqueued(self.uid());
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
