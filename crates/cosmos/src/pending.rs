//! The messages and activities that wait for one instance, and those of the queues: pages, depths and counts by tag.

use crate::document::{Address, Instance, Item, Lock, Override, Versioned};
use crate::error::{contended, refused};
use crate::hold::is_held;
use crate::ids;
use crate::message::counted;
use crate::number;
use crate::sql;
use crate::store::Store;
use futures::{StreamExt, TryStreamExt};
use outlast_model::json;
use outlast_provider::{
    DeadLetterQueue, InstanceItem, PendingWork, ProviderError, QueuePage, QueuedItem, TagDepth,
};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;

const PENDING: &str = "pending";
const QUEUE_PAGE: &str = "queue_page";
const TAG_DEPTHS: &str = "tag_depths";
/// The largest depth of a queue that is reported.
pub(crate) const MOST_COUNTED: usize = 10_000;

const READS: usize = crate::history::READS;

/// The waiting items of the store that no live lease covers: all, and those that become visible later.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Depths {
    pub(crate) messages: u64,
    pub(crate) delayed_messages: u64,
    /// Messages of held instances that are not set aside yet. The other numbers leave them out.
    pub(crate) held_messages: u64,
    pub(crate) activities: u64,
    pub(crate) delayed_activities: u64,
}

impl Depths {
    pub(crate) fn kinds(&self) -> [u64; 5] {
        [self.messages, self.delayed_messages, self.held_messages, self.activities, self.delayed_activities]
    }

    pub(crate) fn of_kinds(kinds: [u64; 5]) -> Self {
        let [messages, delayed_messages, held_messages, activities, delayed_activities] = kinds;
        Self { messages, delayed_messages, held_messages, activities, delayed_activities }
    }
}

impl AddAssign for Depths {
    fn add_assign(&mut self, other: Self) {
        let (mut kinds, others) = (self.kinds(), other.kinds());
        for (kind, other) in kinds.iter_mut().zip(others) {
            *kind += other;
        }
        *self = Self::of_kinds(kinds);
    }
}

/// The kind, name and ids of a stored item. A text that does not decode has none.
fn queued(text: &str) -> QueuedItem {
    let head = json::decode_work_item(text).ok().map(|item| item.head());
    QueuedItem { stored_bytes: text.len() as u64, ..QueuedItem::of(head) }
}

fn queued_activity(item: &Item, now: u64) -> QueuedItem {
    QueuedItem {
        visible_at: item.visible_at,
        locked_until: item.lock.as_ref().map(|lock| lock.until).filter(|until| *until > now),
        attempt_count: item.attempts,
        failures: item.failures.as_ref().map_or(0, |(failures, _)| *failures),
        tag: item.tag.clone(),
        session_id: item.session_id.clone(),
        ..queued(&item.d)
    }
}

/// The place of an item among those of all instances: the order of delivery, and for equal ones partition and id.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place(String, String, String);

impl Place {
    fn of(item: &Item) -> Self {
        Self(item.o.clone(), item.partition.clone(), item.id.clone())
    }
}

/// The instances whose messages may not all be deliverable.
pub(crate) struct Covers {
    /// Instances with leases and delays, by their partitions.
    busy: HashMap<String, Cover>,
    /// The partitions of held instances that have due messages.
    held: HashSet<String>,
}

/// The instances with due messages of which a count looks whether they are held. Most messages of held instances are set aside
/// ([`crate::aside`]), so that a count does not meet them.
const MOST_LOOKED_UP: usize = 64;

/// Lookups at the same time.
const LOOKUPS: usize = 8;

/// An instance that may be held.
#[derive(Deserialize)]
struct MaybeHeld {
    #[serde(default)]
    hold: Option<IgnoredAny>,
}

/// The fields of an instance that decide which of its messages wait.
#[derive(Deserialize)]
struct Cover {
    #[serde(rename = "instanceId")]
    partition: String,
    #[serde(default)]
    lock: Option<Lock>,
    #[serde(rename = "over", default)]
    overrides: BTreeMap<String, Override>,
}

/// The text of a position.
fn json_text(place: &Place) -> Result<String, ProviderError> {
    serde_json::to_string(place).map_err(|error| refused(QUEUE_PAGE, error.to_string()))
}

impl Store {
    pub(crate) async fn pending(&self, instance: &str, limit: usize) -> Result<PendingWork, ProviderError> {
        let address = Address::of(instance);
        for _ in 0..READS {
            let read = self.read_instance(PENDING, &address).await?;
            let document =
                read.map_or_else(|| Instance::skeleton(&address, Default::default()), |read| read.document);
            let messages: Vec<Versioned<Item>> =
                self.client.query(PENDING, &address.partition, sql::MESSAGES, &[]).await?;
            let Some(mut messages) = counted(&document, messages) else { continue };
            messages.sort_by_key(|message| (message.item.visible_at, message.item.sequence));
            let activities: Vec<Versioned<Item>> =
                self.client.query(PENDING, &address.partition, sql::ACTIVITIES, &[]).await?;
            let Some(activities) = counted(&document, activities) else { continue };
            let now = self.now();
            let lock = document.lock.as_ref().filter(|lock| lock.until > now);
            let until = lock.map(|lock| lock.until).or(document.rest.filter(|rest| *rest > now));
            let until = until.filter(|_| !is_held(&document, &messages));
            let covers: HashSet<&String> = lock.into_iter().flat_map(|lock| &lock.covers).collect();
            let (message_count, activity_count) = (messages.len() as u64, activities.len() as u64);
            let messages = messages.into_iter().take(limit).map(|message| QueuedItem {
                visible_at: message.visible_at,
                locked_until: until.filter(|_| covers.contains(&message.item.id)),
                attempt_count: message.attempts,
                ..queued(&message.item.d)
            });
            let activities =
                activities.into_iter().take(limit).map(|activity| queued_activity(&activity.item, now));
            return Ok(PendingWork {
                now_ms: now,
                turn_locked_until: until,
                messages: messages.collect(),
                message_count,
                activities: activities.collect(),
                activity_count,
            });
        }
        Err(contended(PENDING, instance))
    }

    /// Counts the waiting items, at most [`MOST_COUNTED`]: the cost follows the length of the queues up to that number.
    pub(crate) async fn depths(&self, operation: &str) -> Result<Depths, ProviderError> {
        let (mut covers, now) = (self.covers(operation).await?, self.now());
        let waiting: Vec<Item> = self.client.query_all(operation, sql::QUEUED, &[], MOST_COUNTED).await?;
        self.look_up_holds(operation, &waiting, &mut covers, now).await?;
        self.depths_of(waiting, &covers, now).await
    }

    /// A page in the order of delivery. Items of different instances may have the same place in it, so a read ends before an order that
    /// it may have read only in part.
    pub(crate) async fn queue_page(
        &self,
        queue: DeadLetterQueue,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueuePage, ProviderError> {
        let unknown = |_| refused(QUEUE_PAGE, "the position of the page is unknown");
        let after: Option<Place> = after.map(serde_json::from_str).transpose().map_err(unknown)?;
        let kind = match queue {
            DeadLetterQueue::Orchestrator => "m",
            DeadLetterQueue::Worker => "a",
        };
        let from = after.as_ref().map_or("", |Place(order, ..)| order);
        let parameters = [("@type", Value::from(kind)), ("@after", Value::from(from))];
        let mut most = limit.saturating_add(1);
        let mut items = loop {
            let mut found: Vec<Item> =
                self.client.query_all(QUEUE_PAGE, sql::QUEUE, &parameters, most).await?;
            if found.len() >= most
                && let Some(last) = found.last().map(|item| item.o.clone())
            {
                found.retain(|item| item.o != last);
            } else {
                most = usize::MAX;
            }
            found.retain(|item| after.as_ref().is_none_or(|after| Place::of(item) > *after));
            if found.len() > limit || most == usize::MAX {
                break found;
            }
            most = most.saturating_mul(2);
        };
        items.sort_by_cached_key(Place::of);
        let is_cut = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| is_cut).map(Place::of);
        let next = next.map(|next| json_text(&next)).transpose()?;
        let now = self.now();
        let mut instances = HashMap::new();
        let mut page = QueuePage { now_ms: now, items: Vec::new(), next };
        for item in items {
            let Some(address) = item.address() else { continue };
            let queued = match queue {
                DeadLetterQueue::Orchestrator => {
                    self.queued_message(item, &address, now, &mut instances).await?
                }
                DeadLetterQueue::Worker if item.is_staged && !self.is_committed(&item).await? => None,
                DeadLetterQueue::Worker => Some(queued_activity(&item, now)),
            };
            page.items.extend(queued.map(|item| InstanceItem { instance_id: address.id, item }));
        }
        Ok(page)
    }

    /// A message with its delay, its deliveries and the lease that covers it, which the document of its instance has. `None` for a
    /// message that does not count.
    async fn queued_message(
        &self,
        item: Item,
        address: &Address,
        now: u64,
        known: &mut HashMap<String, Instance>,
    ) -> Result<Option<QueuedItem>, ProviderError> {
        for _ in 0..READS {
            let instance = match known.remove(&address.id) {
                Some(instance) => instance,
                None => match self.read_instance(QUEUE_PAGE, address).await? {
                    Some(read) => read.document,
                    None => Instance::skeleton(address, Default::default()),
                },
            };
            let message = Versioned { etag: String::new(), document: item.clone() };
            let Some(found) = counted(&instance, vec![message]) else { continue };
            let lock = instance.lock.as_ref().filter(|lock| lock.until > now && instance.hold.is_none());
            let shown = found.into_iter().next().map(|message| QueuedItem {
                visible_at: message.visible_at,
                locked_until: lock
                    .filter(|lock| lock.covers.contains(&message.item.id))
                    .map(|lock| lock.until),
                attempt_count: message.attempts,
                ..queued(&message.item.d)
            });
            known.insert(address.id.clone(), instance);
            return Ok(shown);
        }
        Err(contended(QUEUE_PAGE, &address.id))
    }

    /// The number of activities for each tag, of at most [`MOST_COUNTED`] activities.
    pub(crate) async fn tag_depths(&self, limit: usize) -> Result<Vec<TagDepth>, ProviderError> {
        let found: Vec<Item> = self.client.query_all(TAG_DEPTHS, sql::TAGS, &[], MOST_COUNTED).await?;
        let now = self.now();
        let mut tags: BTreeMap<Option<String>, TagDepth> = BTreeMap::new();
        for item in found {
            if item.is_staged && !self.is_committed(&item).await? {
                continue;
            }
            let empty = || TagDepth { tag: item.tag.clone(), ..TagDepth::default() };
            let depth = tags.entry(item.tag.clone()).or_insert_with(empty);
            if item.lock.as_ref().is_some_and(|lock| lock.until > now) {
                depth.leased += 1;
            } else if item.visible_at > now {
                depth.delayed += 1;
            } else {
                depth.due += 1;
                depth.oldest_ms = depth.oldest_ms.max(Some(now - item.visible_at));
            }
        }
        Ok(tags.into_values().take(limit).collect())
    }

    /// The instances with leases and delays.
    pub(crate) async fn covers(&self, operation: &str) -> Result<Covers, ProviderError> {
        let never = [("@never", number::LARGEST.into())];
        let found: Vec<Cover> = self.client.query_all(operation, sql::LOCKED, &never, MOST_COUNTED).await?;
        let busy = found.into_iter().map(|cover| (cover.partition.clone(), cover)).collect();
        Ok(Covers { busy, held: HashSet::new() })
    }

    /// Adds the held instances among those with due messages.
    pub(crate) async fn look_up_holds(
        &self,
        operation: &str,
        waiting: &[Item],
        covers: &mut Covers,
        now: u64,
    ) -> Result<(), ProviderError> {
        let due = waiting.iter().filter(|item| item.t == "m" && item.visible_at <= now);
        let partitions: BTreeSet<&String> = due.map(|item| &item.partition).collect();
        // A held instance has neither a lease nor a rest.
        let unknown = partitions.into_iter().filter(|partition| !covers.busy.contains_key(*partition));
        let lookups = unknown.take(MOST_LOOKED_UP).cloned().map(|partition| async move {
            let read = self.client.read::<MaybeHeld>(operation, &partition, ids::INSTANCE).await?;
            Ok::<_, ProviderError>(read.filter(|read| read.document.hold.is_some()).map(|_| partition))
        });
        let lookups: Vec<_> = lookups.collect();
        let held: Vec<Option<String>> =
            futures::stream::iter(lookups).buffer_unordered(LOOKUPS).try_collect().await?;
        covers.held.extend(held.into_iter().flatten());
        Ok(())
    }

    /// Counts these items.
    pub(crate) async fn depths_of(
        &self,
        waiting: Vec<Item>,
        covers: &Covers,
        now: u64,
    ) -> Result<Depths, ProviderError> {
        let mut depths = Depths::default();
        for item in waiting {
            if item.is_staged && !self.is_committed(&item).await? {
                continue;
            }
            if item.t == "a" {
                if item.lock.as_ref().is_none_or(|lock| lock.until <= now) {
                    depths.activities += 1;
                    depths.delayed_activities += u64::from(item.visible_at > now);
                }
                continue;
            }
            let cover = covers.busy.get(&item.partition);
            let lock = cover.and_then(|cover| cover.lock.as_ref()).filter(|lock| lock.until > now);
            if lock.is_some_and(|lock| lock.covers.contains(&item.id)) {
                continue;
            }
            if covers.held.contains(&item.partition) {
                depths.held_messages += 1;
                continue;
            }
            let delay = cover.and_then(|cover| cover.overrides.get(&item.id)?.at);
            depths.messages += 1;
            depths.delayed_messages += u64::from(delay.unwrap_or(item.visible_at) > now);
        }
        Ok(depths)
    }
}
