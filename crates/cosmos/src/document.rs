//! The documents of a container. Names of fields are short: every document is billed by its size.
//!
//! Fields of all documents: `id`, `instanceId` (the partition), `t` (the kind, see [`crate::ids`]). `d` holds texts of users and
//! is not indexed.

mod history;
mod own;
mod pair;

pub(crate) use history::{Events, Execution, ExecutionDocument, StoredEvent};
pub(crate) use own::{DeleteRecord, Earlier, FromOutside, Session};
pub(crate) use pair::{Change, Committed, Content, KvMarks, Pair, Value};

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
    /// The time at which the lock, the rest and all delays are over. Present if there are some, for the depths of queues. A held
    /// instance has [`number::LARGEST`], and no other one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<Lock>,
    /// Until this time no message of the instance is delivered, although no caller holds a lease: messages that a bounded fetch
    /// left behind do not overtake delayed messages.
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<u64>,
    /// The hold of an instance of which no turn is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<Held>,
    /// The number of messages that were set aside, because the instance is held ([`crate::aside`]).
    #[serde(with = "number", default, skip_serializing_if = "is_zero")]
    pub(crate) aside: u64,
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
    /// The messages that this delete removes.
    #[serde(rename = "delm", default, skip_serializing_if = "Option::is_none")]
    pub(crate) earlier: Option<Earlier>,
}

/// The lease of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lock {
    /// The random part of the token.
    #[serde(rename = "s")]
    pub(crate) secret: Uid,
    #[serde(with = "number")]
    pub(crate) until: u64,
    /// The process that holds the lease.
    #[serde(rename = "by")]
    pub(crate) holder: Uid,
    #[serde(rename = "part", default, skip_serializing_if = "is_false")]
    pub(crate) is_partial: bool,
    /// The messages that the lease covers.
    #[serde(rename = "m")]
    pub(crate) covers: Vec<String>,
}

/// The hold of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    #[serde(rename = "k")]
    pub(crate) kind: String,
    #[serde(rename = "by")]
    pub(crate) actor: String,
    #[serde(rename = "why")]
    pub(crate) reason: String,
    #[serde(with = "number")]
    pub(crate) at: u64,
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
    /// The time at which the current execution ended.
    #[serde(rename = "t2", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
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

    /// The time at which the lock or the rest ends.
    pub(crate) fn locked_until(&self) -> Option<u64> {
        self.lock.as_ref().map(|lock| lock.until).max(self.rest)
    }

    /// Removes the mark of a delete that was given up.
    pub(crate) fn unmark(&mut self) {
        (self.deleted_by, self.earlier) = (None, None);
    }

    /// Sets the fields that queries read and that copy other fields.
    pub(crate) fn seal(&mut self, write: Uid) {
        let delayed = self.overrides.values().filter_map(|message| message.at).max();
        let over = self.locked_until().max(delayed).map(|at| at.min(number::LARGEST - 1));
        self.at = if self.hold.is_some() { Some(number::LARGEST) } else { over };
        self.writes = crate::doubt::with_write(std::mem::take(&mut self.writes), write);
    }
}

/// The gate of an instance, which every document from outside changes.
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
    /// The time from which the item may be fetched, for the repair query. A message that is set aside has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    /// The order of delivery: rank, time, sequence.
    #[serde(default)]
    pub(crate) o: String,
    /// The order in which documents were written.
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
    /// The time at which a message became or an activity becomes visible.
    #[serde(rename = "vis", with = "number", default)]
    pub(crate) visible_at: u64,
    #[serde(rename = "x", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) execution_id: Option<u64>,
    #[serde(rename = "e", with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) activity_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// The tag of a waiting activity in the form of [`ids::queue`], for the repair query.
    #[serde(rename = "wq", default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<String>,
    #[serde(rename = "sid", default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(rename = "n", default)]
    pub(crate) attempts: u32,
    /// The number of failures that the handler of an activity has reported, and the text of the last one.
    #[serde(rename = "nf", default, skip_serializing_if = "Option::is_none")]
    pub(crate) failures: Option<(u32, Option<String>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<ActivityLock>,
    /// Name and version of the orchestration that scheduled an activity.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub(crate) orchestration: Option<(String, String)>,
    /// The time at which an intent was stored.
    #[serde(with = "number::option", default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<u64>,
    /// The instance that an intent is for, and the document that it creates there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<Target>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dead: Option<Dead>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<u32>,
}

/// The lease of an activity, in its document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActivityLock {
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
