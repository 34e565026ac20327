//! The key-value state.
//!
//! A document holds the value after the last ended execution (`base`) and the last change. The end of an execution merges all
//! changes without writing a document: it raises the epoch in the instance, and a change of an earlier epoch counts as the base.
//! The removal of all keys is a mark in the instance: it counts for every change with a lower number.

use crate::document::{Address, Change, Committed, Content, Instance, KvMarks, Pair, Value, Versioned};
use crate::ids::{self, Uid};
use crate::sql;
use crate::store::Store;
use crate::visible::{Marks, Visibility};
use outlast_provider::{KvEntry, ProviderError};
use outlast_provider_kit::{KvChange, ResetRows};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The state of a key for readers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// The value after the last ended execution.
    pub(crate) base: Option<Value>,
    /// The change in the current execution: a value, or none for a removal.
    pub(crate) change: Option<(Option<String>, u64)>,
}

impl State {
    /// The value that clients see.
    pub(crate) fn live(self) -> Option<String> {
        match self.change {
            Some((value, _)) => value,
            None => self.base.map(|base| base.value),
        }
    }
}

impl Content {
    /// The content with every merge applied.
    pub(crate) fn state(&self, marks: &KvMarks) -> State {
        let folded = self.folded(marks.epoch);
        let base = folded.base.filter(|base| base.nth > marks.cleared_before);
        let change = folded.change.map(|change| (change.value, change.updated_at, change.nth));
        let change = match (change, marks.cleared) {
            (Some((_, _, nth)), Some((cleared, at))) if nth < cleared => Some((None, at)),
            (Some((value, updated_at, _)), _) => Some((value, updated_at)),
            (None, Some((_, at))) if base.is_some() => Some((None, at)),
            (None, _) => None,
        };
        State { base, change }
    }

    /// The content in which a change of an earlier epoch is the base.
    fn folded(&self, epoch: u64) -> Self {
        match &self.change {
            Some(change) if change.epoch < epoch => Self {
                base: change.value.as_ref().map(|value| Value {
                    value: value.clone(),
                    updated_at: change.updated_at,
                    nth: change.nth,
                }),
                change: None,
            },
            _ => self.clone(),
        }
    }
}

impl KvMarks {
    /// An execution ends: its changes become the base of the next one.
    pub(crate) fn merge(&mut self) {
        self.epoch += 1;
        if let Some((cleared, _)) = self.cleared.take() {
            self.cleared_before = cleared;
        }
    }
}

impl Pair {
    /// The content that counts for a reader with these marks; `None` if the key does not exist for it, an error if the marks are
    /// stale.
    pub(crate) fn counted(&self, marks: &Marks) -> Result<Option<&Content>, Stale> {
        match marks.visibility(&self.id, self.rev.filter(|_| self.committed.is_some())) {
            Visibility::Visible => Ok(Some(&self.content)),
            Visibility::Hidden => {
                Ok(self.committed.as_ref().and_then(|committed| committed.content.as_ref()))
            }
            Visibility::MarksAreStale => Err(Stale),
        }
    }
}

/// The error of a reader whose instance is older than a document.
pub(crate) struct Stale;

/// The changes of a turn as documents. `stored` are the documents of the changed keys.
pub(crate) fn changed(
    address: &Address,
    instance: &mut Instance,
    changes: &[KvChange],
    stored: &HashMap<String, Versioned<Pair>>,
    now: u64,
    rev: u64,
    write: Uid,
) -> Result<Vec<Pair>, Stale> {
    let marks = instance.marks();
    let mut last: BTreeMap<&str, (Option<&String>, u64, u64)> = BTreeMap::new();
    for change in changes {
        instance.kv.changes += 1;
        let nth = instance.kv.changes;
        match change {
            KvChange::Set { key, value, last_updated_at_ms } => {
                last.insert(key, (Some(value), *last_updated_at_ms, nth));
            }
            KvChange::Clear { key } => {
                last.insert(key, (None, now, nth));
            }
            KvChange::ClearAll => {
                instance.kv.cleared = Some((nth, now));
                for (value, updated_at, changed) in last.values_mut() {
                    (*value, *updated_at, *changed) = (None, now, nth);
                }
            }
        }
    }
    let mut pairs = Vec::new();
    for (key, (value, updated_at, nth)) in last {
        let id = ids::key_value(key);
        let committed = stored.get(&id).map(|stored| &stored.document);
        let before = match committed {
            Some(pair) => pair.counted(&marks)?.cloned(),
            None => None,
        };
        let epoch = instance.kv.epoch;
        let base = before.as_ref().and_then(|before| before.folded(epoch).base);
        let content =
            Content { base, change: Some(Change { value: value.cloned(), updated_at, nth, epoch }) };
        let committed = Committed { rev: committed.and_then(|pair| pair.rev), content: before };
        pairs.push(Pair {
            id,
            partition: address.partition.clone(),
            t: "k".to_string(),
            rev: Some(rev),
            w: write,
            key: key.to_string(),
            content,
            committed: Some(Box::new(committed)),
        });
    }
    Ok(pairs)
}

/// The documents of all keys after a reset: each key has the value of the reset as its base, and the change of the copied events. `stored`
/// are the documents of all keys.
pub(crate) fn rebased(
    address: &Address,
    instance: &mut Instance,
    rows: &ResetRows,
    stored: &HashMap<String, Versioned<Pair>>,
    now: u64,
    rev: u64,
    write: Uid,
) -> Result<Vec<Pair>, Stale> {
    let marks = instance.marks();
    // Changes of the execution before the reset, and its removal of all keys, count no more.
    instance.kv.merge();
    let base = rows.keys.iter().filter_map(|change| match change {
        KvChange::Set { key, value, last_updated_at_ms } => {
            Some((key.as_str(), (value, *last_updated_at_ms)))
        }
        _ => None,
    });
    let (base, changed): (BTreeMap<_, _>, _) = (base.collect(), rows.changed_keys());
    let known = stored.values().map(|pair| pair.document.key.as_str());
    let keys: BTreeSet<&str> = known.chain(base.keys().copied()).chain(changed.keys().copied()).collect();
    let mut pairs = Vec::new();
    for key in keys {
        let id = ids::key_value(key);
        let committed = stored.get(&id).map(|stored| &stored.document);
        let before = match committed {
            Some(pair) => pair.counted(&marks)?.cloned(),
            None => None,
        };
        instance.kv.changes += 2;
        let (nth, epoch) = (instance.kv.changes, instance.kv.epoch);
        let base = base.get(key).map(|(value, updated_at)| Value {
            value: value.to_string(),
            updated_at: *updated_at,
            nth: nth - 1,
        });
        let change = changed.get(key).map(|change| Change {
            value: change.map(|(value, _)| value.to_string()),
            updated_at: change.map_or(now, |(_, at)| at),
            nth,
            epoch,
        });
        let committed = Committed { rev: committed.and_then(|pair| pair.rev), content: before };
        pairs.push(Pair {
            id,
            partition: address.partition.clone(),
            t: "k".to_string(),
            rev: Some(rev),
            w: write,
            key: key.to_string(),
            content: Content { base, change },
            committed: Some(Box::new(committed)),
        });
    }
    Ok(pairs)
}

impl Store {
    /// The state of every key.
    pub(crate) async fn keys(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
    ) -> Result<Option<BTreeMap<String, State>>, ProviderError> {
        let pairs: Vec<Pair> = self.client.query(operation, &address.partition, sql::PAIRS, &[]).await?;
        let marks = instance.marks();
        let mut keys = BTreeMap::new();
        for pair in pairs {
            let Ok(content) = pair.counted(&marks) else { return Ok(None) };
            if let Some(content) = content {
                keys.insert(pair.key.clone(), content.state(&instance.kv));
            }
        }
        Ok(Some(keys))
    }

    /// The state of every key, by the newest instance; empty if there is none.
    pub(crate) async fn current_keys(
        &self,
        operation: &str,
        address: &Address,
    ) -> Result<BTreeMap<String, State>, ProviderError> {
        for _ in 0..crate::history::READS {
            let Some(instance) = self.read_instance(operation, address).await? else { break };
            if let Some(keys) = self.keys(operation, address, &instance.document).await? {
                return Ok(keys);
            }
        }
        Ok(BTreeMap::new())
    }

    /// The value of one key that clients see.
    pub(crate) async fn live_value(
        &self,
        operation: &str,
        address: &Address,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        for _ in 0..crate::history::READS {
            let id = ids::key_value(key);
            let pair = self.client.read::<Pair>(operation, &address.partition, &id).await?;
            let Some(pair) = pair else { return Ok(None) };
            let Some(instance) = self.read_instance(operation, address).await? else { return Ok(None) };
            if let Ok(content) = pair.document.counted(&instance.document.marks()) {
                return Ok(content.and_then(|content| content.state(&instance.document.kv).live()));
            }
        }
        Err(crate::error::contended(operation, &address.id))
    }
}

/// The values with which a replay begins.
pub(crate) fn snapshot(keys: BTreeMap<String, State>) -> HashMap<String, KvEntry> {
    let entry = |(key, state): (String, State)| {
        let base = state.base?;
        Some((key, KvEntry { value: base.value, last_updated_at_ms: base.updated_at }))
    };
    keys.into_iter().filter_map(entry).collect()
}
