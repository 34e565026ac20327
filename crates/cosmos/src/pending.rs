//! The messages and activities that wait for one instance, and the depths of the queues.

use crate::document::{Address, Instance, Item, Versioned};
use crate::error::contended;
use crate::hold::is_held;
use crate::message::counted;
use crate::sql;
use crate::store::Store;
use outlast_model::json;
use outlast_provider::{PendingWork, ProviderError, QueuedItem};
use std::collections::{HashMap, HashSet};

const PENDING: &str = "pending";
/// A longer queue is reported with this depth.
const MOST_COUNTED: usize = 10_000;

const READS: usize = crate::history::READS;

/// The waiting items of the store that no live lease covers: all, and those that become visible later.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Depths {
    pub(crate) messages: u64,
    pub(crate) delayed_messages: u64,
    /// Messages of held instances, which the other numbers leave out.
    pub(crate) held_messages: u64,
    pub(crate) activities: u64,
    pub(crate) delayed_activities: u64,
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
        let instances: Vec<Instance> =
            self.client.query_all(operation, sql::LOCKED, &[], MOST_COUNTED).await?;
        let instances: HashMap<String, Instance> =
            instances.into_iter().map(|instance| (instance.partition.clone(), instance)).collect();
        let waiting: Vec<Item> = self.client.query_all(operation, sql::WAITING, &[], MOST_COUNTED).await?;
        let now = self.now();
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
            let instance = instances.get(&item.partition);
            let lock = instance.and_then(|instance| instance.lock.as_ref()).filter(|lock| lock.until > now);
            if lock.is_some_and(|lock| lock.covers.contains(&item.id)) {
                continue;
            }
            if instance.is_some_and(|instance| instance.hold.is_some()) {
                depths.held_messages += 1;
                continue;
            }
            let delay = instance.and_then(|instance| instance.overrides.get(&item.id)?.at);
            depths.messages += 1;
            depths.delayed_messages += u64::from(delay.unwrap_or(item.visible_at) > now);
        }
        Ok(depths)
    }
}
