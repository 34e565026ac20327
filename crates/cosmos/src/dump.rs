//! The documents of a store in the lines that the memory store prints, and damage to stored texts (feature `test-hooks`).

use crate::CosmosDBProvider;
use crate::client::Op;
use crate::document::{Address, Dead, Events, ExecutionDocument, Instance, Item, Pair, Session};
use crate::history::visible_executions;
use crate::ids;
use crate::layout;
use crate::message::counted;
use crate::sql;
use outlast_provider::{DeadLetter, DeadLetterQueue, ProviderError};
use serde_json::Value;
use std::collections::BTreeMap;

const DUMP: &str = "dump";

/// The stored texts that a test damages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// Events.
    History,
    /// Messages.
    Messages,
    /// Activities.
    Activities,
}

/// The documents of one partition.
#[derive(Default)]
struct Partition {
    instance: Option<Instance>,
    items: Vec<crate::document::Versioned<Item>>,
    events: Vec<Events>,
    executions: Vec<ExecutionDocument>,
    pairs: Vec<Pair>,
}

impl CosmosDBProvider {
    /// Every row, one line each, sorted, as `MemoryProvider::dump` prints them.
    pub async fn dump(&self) -> Result<Vec<String>, ProviderError> {
        let all: Vec<Value> = self.store.client.query_all(DUMP, sql::ALL, &[], usize::MAX).await?;
        let mut partitions: BTreeMap<String, Partition> = BTreeMap::new();
        let mut lines = Vec::new();
        for document in all {
            let key = document["instanceId"].as_str().unwrap_or_default().to_string();
            let partition = partitions.entry(key).or_default();
            let failed = |error| crate::error::damaged(DUMP, error);
            match document["t"].as_str().unwrap_or_default() {
                "i" => partition.instance = Some(serde_json::from_value(document).map_err(failed)?),
                "m" | "a" | "z" => partition.items.push(serde_json::from_value(document).map_err(failed)?),
                "h" => partition.events.push(serde_json::from_value(document).map_err(failed)?),
                "x" => partition.executions.push(serde_json::from_value(document).map_err(failed)?),
                "k" => partition.pairs.push(serde_json::from_value(document).map_err(failed)?),
                "s" => {
                    let session: Session = serde_json::from_value(document).map_err(failed)?;
                    let Session { session_id, owner, until, last_activity_at, .. } = session;
                    lines.push(format!("session {session_id} {owner} {until} {last_activity_at}"));
                }
                "o" => lines.push(format!("contradiction an undelivered intent {}", document["id"])),
                _ => {}
            }
        }
        for (key, partition) in partitions {
            let long_id = partition.instance.as_ref().and_then(|instance| instance.iid.clone());
            let Some(address) = Address::of_document(&key, long_id.as_deref()) else { continue };
            partition.print(&address, &mut lines);
        }
        lines.sort();
        Ok(lines)
    }

    /// Replaces stored texts of an instance.
    pub async fn damage(&self, what: Texts, instance: &str, text: &str) -> Result<(), ProviderError> {
        let partition = layout::instance(instance);
        let all: Vec<Value> = self.store.client.query(DUMP, &partition, sql::ALL, &[]).await?;
        for mut document in all {
            let is_meant = match document["t"].as_str().unwrap_or_default() {
                "h" => what == Texts::History,
                "m" => what == Texts::Messages,
                "a" => what == Texts::Activities,
                _ => false,
            };
            if !is_meant {
                continue;
            }
            match document["d"].as_array_mut() {
                Some(events) => events.iter_mut().for_each(|event| event["d"] = text.into()),
                None => document["d"] = text.into(),
            }
            let id = document["id"].as_str().unwrap_or_default().to_string();
            let batched = self
                .store
                .client
                .batch(&partition, vec![Op::Replace { id, body: document, etag: None }])
                .await?;
            assert_eq!(batched.verdict(), crate::doubt::Verdict::Applied, "{batched:?}");
        }
        self.store.forget_documents();
        Ok(())
    }

    /// The documents of an instance, for [`Self::copy_instance`].
    pub async fn documents(&self, instance: &str) -> Result<Vec<Value>, ProviderError> {
        self.store.client.query(DUMP, &Address::of(instance).partition, sql::ALL, &[]).await
    }

    /// Stores documents of one instance again as those of another one, in one batch.
    pub async fn copy_instance(
        &self,
        documents: &[Value],
        from: &str,
        to: &str,
    ) -> Result<(), ProviderError> {
        let address = Address::of(to);
        let mut operations = Vec::new();
        for document in documents {
            let mut copy = document.clone();
            if let Some(fields) = copy.as_object_mut() {
                fields.retain(|name, _| !name.starts_with('_'));
            }
            if copy.get("slot").is_some() {
                copy["slot"] = crate::slots::slot_of(to).into();
            }
            copy["instanceId"] = address.partition.as_str().into();
            if let Some(item) = copy["d"].as_str() {
                copy["d"] = item.replace(&format!("\"{from}\""), &format!("\"{to}\"")).into();
            }
            operations.push(Op::create(&copy)?);
        }
        let batched = self.store.client.batch(&address.partition, operations).await?;
        assert_eq!(batched.verdict(), crate::doubt::Verdict::Applied, "{batched:?}");
        Ok(())
    }

    /// Stores a dead letter.
    pub async fn write_dead_letter(&self, letter: &DeadLetter) -> Result<(), ProviderError> {
        let address = Address::of(letter.instance_id.as_deref().unwrap_or_default());
        let store = &self.store;
        let write = store.uid();
        let dead = Dead {
            queue: letter.queue.as_str().to_string(),
            reason: letter.reason.clone(),
            at: letter.dead_at,
            sequence: store.time.sequence(),
        };
        let item = Item {
            id: match letter.queue {
                DeadLetterQueue::Orchestrator => ids::message(&ids::MessageKey::Enqueued(write)),
                DeadLetterQueue::Worker => ids::activity(1, 1, Some(write)),
            },
            partition: address.partition.clone(),
            t: "z".to_string(),
            iid: address.long_id(),
            slot: crate::slots::slot_of(&address.id),
            w: write,
            d: letter.work_item.clone(),
            attempts: letter.attempt_count,
            dead: Some(dead),
            ..Item::default()
        };
        let batched = store.client.batch(&address.partition, vec![Op::create(&item)?]).await?;
        assert_eq!(batched.verdict(), crate::doubt::Verdict::Applied, "{batched:?}");
        Ok(())
    }

    /// Adds the counts of this process to its document, as it does every ten seconds.
    pub async fn flush_counts(&self) -> Result<(), ProviderError> {
        self.store.flush_tally().await
    }

    /// The highest delivery count among the waiting messages of an instance.
    pub async fn max_attempt_count(&self, instance: &str) -> Result<u32, ProviderError> {
        let pending = self.store.pending(instance, usize::MAX).await?;
        Ok(pending.messages.iter().map(|message| message.attempt_count).max().unwrap_or(0))
    }

    /// The last event of an execution, decodable or not, and the texts of all its events.
    pub async fn stored_events(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<(u64, String)>, ProviderError> {
        let (_, events) = self.store.current_events(DUMP, &Address::of(instance), Some(execution_id)).await?;
        Ok(events.into_iter().map(|event| (event.event_id, event.text)).collect())
    }
}

impl Partition {
    fn print(self, address: &Address, lines: &mut Vec<String>) {
        let id = &address.id;
        let instance = self.instance.unwrap_or_else(|| Instance::skeleton(address, Default::default()));
        if let Some(row) = &instance.row {
            lines.push(format!(
                "instance {id} {} {} {} {:?} {:?} {} {} {}",
                row.name,
                row.version,
                row.current,
                instance.par,
                row.custom_status,
                row.custom_status_version,
                row.created_at,
                row.updated_at
            ));
        }
        if let Some(until) = instance.locked_until() {
            lines.push(format!("lease {id} {until}"));
        }
        let messages = counted(&instance, self.items.clone()).unwrap_or_default();
        if let Some(held) = instance.hold.as_ref().filter(|_| crate::hold::is_held(&instance, &messages)) {
            lines.push(format!("hold {id} {} {:?} {:?} {}", held.kind, held.actor, held.reason, held.at));
        }
        let mut executions = BTreeMap::new();
        for document in visible_executions(&instance, self.executions).unwrap_or_default() {
            executions.insert(document.execution_id, document.execution);
        }
        if let Some(mut latest) = instance.latest.clone() {
            if latest.output_is_far {
                let far = executions.remove(&latest.execution_id);
                latest.output = far.and_then(|far| far.output);
            }
            executions.insert(latest.execution_id, latest);
        }
        for execution in executions.into_values().filter(|execution| !execution.has_events_only) {
            let pinned = &execution.pinned;
            lines.push(format!(
                "execution {id} {} {} {:?} {} {:?} {pinned:?}",
                execution.execution_id,
                execution.status,
                execution.output,
                execution.started_at,
                execution.completed_at
            ));
        }
        for document in self.events {
            for event in document.d {
                let (execution_id, event_id) = (document.execution_id, event.event_id);
                lines.push(format!("history {id} {execution_id} {event_id:05} {}", event.text));
            }
        }
        print_items(id, &instance, self.items, lines);
        for pair in self.pairs {
            let Ok(Some(content)) = pair.counted(&instance.marks()) else { continue };
            let state = content.state(&instance.kv);
            if let Some(base) = &state.base {
                lines.push(format!("kv {id} {:?} {:?} {}", pair.key, base.value, base.updated_at));
            }
            if let Some((value, at)) = state.change {
                lines.push(format!("kv-delta {id} {:?} {value:?} {at}", pair.key));
            }
        }
    }
}

fn print_items(
    id: &str,
    instance: &Instance,
    items: Vec<crate::document::Versioned<Item>>,
    lines: &mut Vec<String>,
) {
    for waiting in counted(instance, items).unwrap_or_default() {
        let item = &waiting.item;
        match item.t.as_str() {
            "z" => {
                let queue = item.dead.as_ref().map_or("", |dead| dead.queue.as_str());
                lines.push(format!("dead {queue} {id} {} {}", item.attempts, item.d));
            }
            "a" => {
                let locked_until = item.lock.as_ref().map_or(0, |lock| lock.until);
                let (failures, last_error) = item.failures.clone().unwrap_or_default();
                lines.push(format!(
                    "work {id} {} {} {} {} {locked_until} {} {} {:?} {:?} {:?} {}",
                    item.execution_id.unwrap_or(0),
                    item.activity_id.unwrap_or(0),
                    item.visible_at,
                    item.lock.is_some(),
                    item.attempts,
                    failures,
                    last_error,
                    item.session_id,
                    item.tag,
                    item.d
                ));
            }
            _ => {
                let lock = instance.lock.as_ref().filter(|lock| lock.covers.contains(&item.id));
                let fetch_at = lock.map_or(waiting.visible_at, |lock| lock.until);
                lines.push(format!(
                    "message {id} {} {} {fetch_at} {} {} {}",
                    item.visible_at,
                    waiting.visible_at,
                    lock.is_some(),
                    waiting.attempts,
                    item.d
                ));
            }
        }
    }
}
