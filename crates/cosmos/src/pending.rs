//! The messages and activities that wait for one instance, and the depths of the queues.

use crate::document::{Address, Instance, Item, Lock, Override, Versioned};
use crate::error::contended;
use crate::hold::is_held;
use crate::ids;
use crate::message::counted;
use crate::number;
use crate::sql;
use crate::store::Store;
use futures::{StreamExt, TryStreamExt};
use outlast_model::json;
use outlast_provider::{PendingWork, ProviderError, QueuedItem};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::AddAssign;

const PENDING: &str = "pending";
/// A longer queue is reported with this depth.
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
            let queued = |text: &str| QueuedItem {
                stored_bytes: text.len() as u64,
                ..QueuedItem::of(json::decode_work_item(text).ok().map(|item| item.head()))
            };
            let (message_count, activity_count) = (messages.len() as u64, activities.len() as u64);
            let messages = messages.into_iter().take(limit).map(|message| QueuedItem {
                visible_at: message.visible_at,
                locked_until: until.filter(|_| covers.contains(&message.item.id)),
                attempt_count: message.attempts,
                ..queued(&message.item.d)
            });
            let activities = activities.into_iter().take(limit).map(|activity| QueuedItem {
                visible_at: activity.item.visible_at,
                locked_until: activity.item.lock.map(|lock| lock.until).filter(|until| *until > now),
                attempt_count: activity.item.attempts,
                failures: activity.item.failures.as_ref().map_or(0, |(failures, _)| *failures),
                tag: activity.item.tag.clone(),
                session_id: activity.item.session_id.clone(),
                ..queued(&activity.item.d)
            });
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
