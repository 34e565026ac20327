//! The documents of a container. Names of fields are short: every document is billed by its size.
//!
//! Fields of all documents: `id`, `instanceId` (the partition), `t` (the kind, see [`crate::ids`]). `d` holds texts of users and
//! is not indexed.

use crate::ids::{self, Uid};
use crate::layout;
use crate::number;
use crate::slots::slot_of;
use crate::visible::Marks;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A document with the version under which it was read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Versioned<T> {
    #[serde(rename = "_etag", default)]
    pub(crate) etag: String,
    #[serde(flatten)]
    pub(crate) document: T,
}

/// The address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) id: String,
    pub(crate) partition: String,
}

impl Address {
    pub(crate) fn of(instance: &str) -> Self {
        Self { id: instance.to_string(), partition: layout::instance(instance) }
    }

    /// The address of the instance that a document belongs to. `long_id` is the id that a document holds beside a hashed
    /// partition key. `None` for a document of the store.
    pub(crate) fn of_document(partition: &str, long_id: Option<&str>) -> Option<Self> {
        let id = match layout::owner(partition) {
            layout::Owner::Instance(id) => id.to_string(),
            layout::Owner::LongId => long_id?.to_string(),
            layout::Owner::Store => return None,
        };
        Some(Self { id, partition: partition.to_string() })
    }

    /// The id, if the partition key does not hold it.
    pub(crate) fn long_id(&self) -> Option<String> {
        matches!(layout::owner(&self.partition), layout::Owner::LongId).then(|| self.id.clone())
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// The document of an instance: `t = "i"`. It exists from the first lock or start on; `row` says whether the instance does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) iid: Option<String>,
    pub(crate) slot: u8,
    pub(crate) uid: Uid,
    /// Sorts before messages.
    pub(crate) o: String,
    #[serde(with = "number")]
    pub(crate) rev: u64,
    #[serde(rename = "stg", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) staged: Option<u64>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) dead: BTreeSet<u64>,
    #[serde(rename = "drop", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) dropped: BTreeSet<String>,
    /// Ids of the last writes.
    #[serde(rename = "w")]
    pub(crate) writes: Vec<Uid>,
    /// When the lock, the rest and all delays are over. Present if there are some, for the depths of queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<Lock>,
    /// Until this time no message of the instance is delivered, although no caller holds a lease: messages that a bounded fetch
    /// left behind do not overtake delayed ones.
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<u64>,
    /// Deliveries and delays of messages, by the ids of their documents.
    #[serde(rename = "over", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) overrides: BTreeMap<String, Override>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) row: Option<Row>,
    /// The order of creation, for lists. Present if there is a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ct: Option<u64>,
    /// The status of the current execution. Present if there is a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) st: Option<String>,
    /// The parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) par: Option<String>,
    /// The execution with the highest id.
    #[serde(rename = "last", default, skip_serializing_if = "Option::is_none")]
    pub(crate) latest: Option<Execution>,
    /// Whether events were appended to an execution above the highest one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) odd: bool,
    /// The number of executions and of events.
    #[serde(rename = "nx", with = "number", default, skip_serializing_if = "is_zero")]
    pub(crate) executions: u64,
    #[serde(rename = "ne", with = "number", default, skip_serializing_if = "is_zero")]
    pub(crate) events: u64,
    #[serde(default, skip_serializing_if = "KvMarks::is_default")]
    pub(crate) kv: KvMarks,
    /// The record of a delete that marked this instance.
    #[serde(rename = "del", default, skip_serializing_if = "Option::is_none")]
    pub(crate) deleted_by: Option<Uid>,
}

/// The lease of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    /// The random part of the token.
    #[serde(rename = "s")]
    pub(crate) secret: Uid,
    #[serde(with = "number")]
    pub(crate) until: u64,
    /// The process that holds it.
    #[serde(rename = "by")]
    pub(crate) holder: Uid,
    #[serde(rename = "part", default, skip_serializing_if = "is_false")]
    pub(crate) is_partial: bool,
    /// The messages that it covers.
    #[serde(rename = "m")]
    pub(crate) covers: Vec<String>,
}

/// A message that was delivered or delayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Override {
    #[serde(rename = "n", default)]
    pub(crate) attempts: u32,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
}

/// The part of the document by which an instance exists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    #[serde(rename = "nm")]
    pub(crate) name: String,
    #[serde(rename = "ver")]
    pub(crate) version: String,
    #[serde(rename = "cur", with = "number")]
    pub(crate) current: u64,
    #[serde(rename = "t0", with = "number")]
    pub(crate) created_at: u64,
    #[serde(rename = "t1", with = "number")]
    pub(crate) updated_at: u64,
    #[serde(rename = "cs", default, skip_serializing_if = "Option::is_none")]
    pub(crate) custom_status: Option<String>,
    #[serde(rename = "csv", default, skip_serializing_if = "is_zero")]
    pub(crate) custom_status_version: u64,
    /// When the current execution ended.
    #[serde(rename = "t2", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
}

/// An execution: inside of the instance if it has the highest id, else in a document `x`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Execution {
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    /// Events were appended outside of a turn, and no turn was committed.
    #[serde(rename = "ev", default, skip_serializing_if = "is_false")]
    pub(crate) has_events_only: bool,
    #[serde(rename = "s", default)]
    pub(crate) status: String,
    #[serde(rename = "out", default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    /// The output is in the document of the execution.
    #[serde(rename = "far", default, skip_serializing_if = "is_false")]
    pub(crate) output_is_far: bool,
    #[serde(rename = "t0", with = "number", default)]
    pub(crate) started_at: u64,
    #[serde(rename = "t1", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
    #[serde(rename = "pin", default, skip_serializing_if = "Option::is_none")]
    pub(crate) pinned: Option<String>,
    #[serde(rename = "e", with = "number", default)]
    pub(crate) last_event_id: u64,
    #[serde(rename = "n", with = "number", default)]
    pub(crate) events: u64,
    #[serde(rename = "b", with = "number", default)]
    pub(crate) bytes: u64,
}

/// The state of all keys: see [`crate::kv`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KvMarks {
    /// The number of ended executions.
    #[serde(rename = "ep", default)]
    pub(crate) epoch: u64,
    /// The number of changes.
    #[serde(rename = "n", default)]
    pub(crate) changes: u64,
    /// The last removal of all keys in this epoch, and its time.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(crate) cleared: Option<(u64, u64)>,
    /// The last removal of all keys in an earlier epoch.
    #[serde(rename = "cb", default)]
    pub(crate) cleared_before: u64,
}

impl KvMarks {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Instance {
    /// A document without a row.
    pub(crate) fn skeleton(address: &Address, uid: Uid) -> Self {
        Self {
            id: ids::INSTANCE.to_string(),
            partition: address.partition.clone(),
            t: "i".to_string(),
            iid: address.long_id(),
            slot: slot_of(&address.id),
            uid,
            ..Self::default()
        }
    }

    pub(crate) fn address(&self) -> Option<Address> {
        Address::of_document(&self.partition, self.iid.as_deref())
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks { rev: self.rev, staged: self.staged, dead: self.dead.clone(), dropped: self.dropped.clone() }
    }

    pub(crate) fn set_marks(&mut self, marks: Marks) {
        let Marks { rev, staged, dead, dropped } = marks;
        (self.rev, self.staged, self.dead, self.dropped) = (rev, staged, dead, dropped);
    }

    /// The highest execution with a commit, 1 if there is none.
    pub(crate) fn latest_execution(&self) -> u64 {
        self.latest.as_ref().map_or(1, |latest| latest.execution_id)
    }

    /// When the lock or the rest ends.
    pub(crate) fn locked_until(&self) -> Option<u64> {
        self.lock.as_ref().map(|lock| lock.until).max(self.rest)
    }

    /// Sets the fields that repeat others, for queries.
    pub(crate) fn seal(&mut self, write: Uid) {
        let delayed = self.overrides.values().filter_map(|message| message.at).max();
        self.at = self.locked_until().max(delayed).map(number::indexed);
        self.writes = crate::doubt::with_write(std::mem::take(&mut self.writes), write);
    }
}

/// The gate of an instance, which every arrival changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Gate {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    pub(crate) w: Uid,
}

impl Gate {
    pub(crate) fn new(partition: &str, write: Uid) -> Self {
        Self { id: ids::GATE.to_string(), partition: partition.to_string(), t: "g".to_string(), w: write }
    }
}

/// A message (`m`), an activity (`a`), an intent of the outbox (`o`) or a dead letter (`z`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) iid: Option<String>,
    #[serde(default)]
    pub(crate) slot: u8,
    /// When the item may be fetched, for the repair query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    /// The order of delivery: rank, time, sequence.
    #[serde(default)]
    pub(crate) o: String,
    /// The order of arrival.
    #[serde(rename = "q", default)]
    pub(crate) sequence: u64,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    /// The document was staged: a reader compares its rev with the instance.
    #[serde(rename = "sg", default, skip_serializing_if = "is_false")]
    pub(crate) is_staged: bool,
    pub(crate) w: Uid,
    /// The work item as JSON.
    #[serde(default)]
    pub(crate) d: String,
    /// When a message became or an activity becomes visible.
    #[serde(rename = "vis", with = "number", default)]
    pub(crate) visible_at: u64,
    #[serde(rename = "x", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) execution_id: Option<u64>,
    #[serde(rename = "e", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) activity_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    #[serde(rename = "sid", default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(rename = "n", default)]
    pub(crate) attempts: u32,
    /// The number of failures that the handler of an activity has reported, and the text of the last one.
    #[serde(rename = "nf", default, skip_serializing_if = "Option::is_none")]
    pub(crate) failures: Option<(u32, Option<String>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<WorkLock>,
    /// Name and version of the orchestration that scheduled an activity.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub(crate) orchestration: Option<(String, String)>,
    /// The instance that an intent is for, and the document that it creates there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Target>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead: Option<Dead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

/// The lease of an activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkLock {
    #[serde(rename = "s")]
    pub(crate) secret: Uid,
    #[serde(with = "number")]
    pub(crate) until: u64,
    #[serde(rename = "by")]
    pub(crate) holder: Uid,
}

/// The target of an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    #[serde(rename = "i")]
    pub(crate) instance: String,
    /// The id of the document.
    pub(crate) id: String,
    /// Whether the document is an activity; else it is a message.
    #[serde(rename = "a", default, skip_serializing_if = "is_false")]
    pub(crate) is_activity: bool,
}

/// The end of an item that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dead {
    #[serde(rename = "q")]
    pub(crate) queue: String,
    #[serde(rename = "why")]
    pub(crate) reason: String,
    #[serde(with = "number")]
    pub(crate) at: u64,
    /// The order of dead letters.
    #[serde(rename = "n")]
    pub(crate) sequence: u64,
}

impl Item {
    /// The order of a message or an activity.
    pub(crate) fn order(rank: u8, available_at: u64, sequence: u64) -> String {
        format!("{rank}{available_at:020}{sequence:020}")
    }

    /// Sets the order and the time for the repair query.
    pub(crate) fn place(&mut self, rank: u8, sequence: u64) {
        self.sequence = sequence;
        self.o = Self::order(rank, self.visible_at, sequence);
        self.at = Some(number::indexed(self.visible_at));
    }

    pub(crate) fn address(&self) -> Option<Address> {
        Address::of_document(&self.partition, self.iid.as_deref())
    }
}

/// The events of one turn, or a part of them: `t = "h"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Events {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    #[serde(rename = "e", with = "number")]
    pub(crate) first: u64,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    /// Ids and texts.
    pub(crate) d: Vec<StoredEvent>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredEvent {
    #[serde(rename = "e", with = "number")]
    pub(crate) event_id: u64,
    #[serde(rename = "d")]
    pub(crate) text: String,
}

/// An execution that is not the highest one, or whose output is large: `t = "x"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExecutionDocument {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    #[serde(rename = "x", with = "number")]
    pub(crate) execution_id: u64,
    #[serde(rename = "d")]
    pub(crate) execution: Execution,
}

/// A key of the key-value state: `t = "k"`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    pub(crate) w: Uid,
    pub(crate) key: String,
    #[serde(rename = "d")]
    pub(crate) content: Content,
    /// The committed content, while `content` belongs to a staged turn.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<Box<Committed>>,
}

/// The content of a key before a staged turn; none if the key is new.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Committed {
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rev: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content>,
}

/// The values of a key. See [`crate::kv`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Content {
    /// The value after the last ended execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Value>,
    /// The last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Value {
    #[serde(rename = "v")]
    pub(crate) value: String,
    #[serde(rename = "at", with = "number")]
    pub(crate) updated_at: u64,
    /// The number of the change that set it.
    #[serde(rename = "n")]
    pub(crate) nth: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The value; none if the key was removed.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<String>,
    #[serde(rename = "at", with = "number")]
    pub(crate) updated_at: u64,
    #[serde(rename = "n")]
    pub(crate) nth: u64,
    #[serde(rename = "ep")]
    pub(crate) epoch: u64,
}

/// A session: `t = "s"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    #[serde(rename = "sid")]
    pub(crate) session_id: String,
    #[serde(rename = "own")]
    pub(crate) owner: String,
    #[serde(with = "number")]
    pub(crate) until: u64,
    #[serde(rename = "act", with = "number")]
    pub(crate) last_activity_at: u64,
    pub(crate) w: Uid,
}

/// The record of a delete: `t = "d"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeleteRecord {
    pub(crate) id: String,
    #[serde(rename = "instanceId")]
    pub(crate) partition: String,
    pub(crate) t: String,
    pub(crate) ids: Vec<String>,
    #[serde(rename = "flip", default)]
    pub(crate) is_flipped: bool,
    /// The time of its creation.
    #[serde(with = "number")]
    pub(crate) made_at: u64,
    /// Messages that arrive after the flip belong to a new instance.
    #[serde(rename = "q", default)]
    pub(crate) sequence: u64,
}
