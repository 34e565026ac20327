//! The messages that a fetch takes, and the documents of messages.

use crate::document::{Address, Dead, Instance, Item, Versioned};
use crate::ids::{self, MessageKey, Uid};
use crate::ready::Seen;
use crate::slots::slot_of;
use crate::visible::Visibility;
use outlast_model::{WorkItem, json};
use outlast_provider::{DeadLetterQueue, MessageBound};
use outlast_provider_kit::MessageRow;

/// A message with the deliveries and the delay that the instance holds.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) item: Item,
    pub(crate) etag: String,
    pub(crate) visible_at: u64,
    pub(crate) attempts: u32,
}

impl Waiting {
    /// The time at which the message first became visible, and its number: the order of delivery.
    fn place(&self) -> (u64, u64) {
        (self.item.visible_at, self.item.sequence)
    }

    pub(crate) fn seen(&self) -> Seen {
        Seen { id: self.item.id.clone(), visible_at: self.visible_at, sequence: self.item.sequence }
    }
}

/// The messages that count for a reader; `None` if the instance must be read again.
pub(crate) fn counted(instance: &Instance, messages: Vec<Versioned<Item>>) -> Option<Vec<Waiting>> {
    let marks = instance.marks();
    let mut counted = Vec::new();
    for Versioned { etag, document: item } in messages {
        match marks.visibility(&item.id, item.rev.filter(|_| item.is_staged)) {
            Visibility::Visible => {
                let found = instance.overrides.get(&item.id).copied().unwrap_or_default();
                let visible_at = found.at.unwrap_or(item.visible_at);
                counted.push(Waiting { item, etag, visible_at, attempts: found.attempts });
            }
            Visibility::Hidden => {}
            Visibility::MarksAreStale => return None,
        }
    }
    Some(counted)
}

/// The messages that one fetch takes, in the order of delivery, and whether it leaves some behind.
pub(crate) fn taken(visible: Vec<Waiting>, bound: MessageBound) -> (Vec<Waiting>, bool) {
    let count = visible.len();
    let bytes: usize = visible.iter().map(|message| message.item.d.len()).sum();
    let mut taken = match count <= bound.messages && bytes <= bound.bytes {
        true => visible,
        false => bounded(visible, bound),
    };
    taken.sort_by_key(Waiting::place);
    let is_partial = taken.len() < count;
    (taken, is_partial)
}

fn bounded(mut visible: Vec<Waiting>, bound: MessageBound) -> Vec<Waiting> {
    visible.sort_by_cached_key(|message| (rank(&message.item.d), message.place()));
    let (mut bytes, mut taken) = (0, Vec::new());
    for message in visible {
        let next = message.item.d.len();
        if !bound.takes(taken.len(), bytes, next) {
            break;
        }
        bytes += next;
        taken.push(message);
    }
    taken
}

/// The order in which a bounded fetch takes messages: the start of a successor, other starts, all others.
fn rank(text: &str) -> u8 {
    match json::decode_work_item(text) {
        Ok(WorkItem::ContinueAsNew { .. }) => 0,
        Ok(WorkItem::StartOrchestration { .. }) => 1,
        _ => 2,
    }
}

/// The rank of a message that is stored.
pub(crate) fn rank_of(row: &MessageRow) -> u8 {
    match (row.begins, row.continues()) {
        (true, true) => 0,
        (true, false) => 1,
        _ => 2,
    }
}

/// The document of a message.
pub(crate) fn document(
    address: &Address,
    key: &MessageKey,
    row: &MessageRow,
    visible_at: u64,
    sequence: u64,
    write: Uid,
) -> Item {
    let mut item = Item {
        id: ids::message(key),
        partition: address.partition.clone(),
        t: "m".to_string(),
        iid: address.long_id(),
        slot: slot_of(&address.id),
        w: write,
        d: row.work_item.clone(),
        visible_at,
        ..Item::default()
    };
    item.place(rank_of(row), sequence);
    item
}

/// A message or an activity as a dead letter.
pub(crate) fn dead_letter(
    item: &Item,
    queue: DeadLetterQueue,
    reason: String,
    attempts: u32,
    now: u64,
    sequence: u64,
) -> Item {
    Item {
        t: "z".to_string(),
        at: None,
        queue: None,
        lock: None,
        attempts,
        dead: Some(Dead { queue: queue.as_str().to_string(), reason, at: now, sequence }),
        ..item.clone()
    }
}
