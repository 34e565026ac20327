//! Hints: small documents by which a process notifies another process of work that it stored. A hint is advisory: the work is in
//! the partition of its instance, and the repair query finds the work without a hint.
//!
//! | partition | hint of | read by |
//! |---|---|---|
//! | `~ready-0` | a message, or an instance that its owner offers to all | processes that fetch turns; the owner of the dispatch slot keeps it |
//! | `~work` | activities with their documents | processes that fetch activities; one worker keeps it |
//!
//! A hint of a message is written in parallel with the message and may be stored first. Hints expire by themselves.

use crate::client::{Changes, Op};
use crate::document::{Address, Item};
use crate::heartbeat::Seeker;
use crate::ids::Uid;
use crate::layout;
use crate::number;
use crate::pace::{Pace, SHORTEST_MS};
use crate::seats::Roles;
use crate::slots::slot_of;
use crate::store::{Store, locked};
use azure_data_cosmos::feed::ContinuationToken;
use futures::StreamExt;
use outlast_provider::ProviderError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;

const HINTS: &str = "hints";

/// The life of a hint, in seconds.
const LIFE: u32 = 600;

/// Work that is due later is found by the repair query.
const HORIZON_MS: u64 = 60_000;

/// The activities in one hint, and the bytes of their documents.
const MOST_ACTIVITIES: usize = 64;
const MOST_BYTES: usize = 32 * 1024;

/// The document of a hint. Its content is not indexed.
#[derive(Serialize, Deserialize)]
struct Hint<T> {
    id: String,
    #[serde(rename = "instanceId")]
    partition: String,
    t: String,
    d: T,
    ttl: u32,
}

/// A message that was stored, or is about to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnHint {
    #[serde(rename = "i")]
    pub(crate) instance: String,
    #[serde(rename = "m")]
    pub(crate) message: String,
    #[serde(with = "number")]
    pub(crate) visible_at: u64,
    #[serde(rename = "q")]
    pub(crate) sequence: u64,
    pub(crate) by: Uid,
    /// The owner of the slot cannot run the instance: every runtime tries.
    #[serde(rename = "offer", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_offer: bool,
}

/// Activities that were stored.
#[derive(Serialize, Deserialize)]
struct ActivityHint {
    by: Uid,
    /// A worker cannot run the activities: every other worker tries.
    #[serde(rename = "offer", default, skip_serializing_if = "std::ops::Not::not")]
    is_offer: bool,
    #[serde(rename = "work")]
    activities: Vec<HintedActivity>,
}

#[derive(Clone, Serialize, Deserialize)]
struct HintedActivity {
    /// The version of the document. Empty: the hint does not hold the document.
    #[serde(rename = "v", default, skip_serializing_if = "String::is_empty")]
    etag: String,
    item: Item,
}

/// A position in the hints of one partition.
pub(crate) struct Feed {
    partition: String,
    changes: Option<Changes>,
    position: Option<ContinuationToken>,
    due: u64,
    pace: Pace,
}

impl Feed {
    fn of(partition: String) -> Self {
        Self { partition, changes: None, position: None, due: 0, pace: Pace::default() }
    }

    /// Reads the next page. The flag says that the position is new: hints before it were not read.
    async fn read(&mut self, store: &Store) -> Result<(Vec<Value>, bool), ProviderError> {
        let is_new = self.position.is_none();
        let mut changes = match self.changes.take() {
            Some(changes) => changes,
            None => store.client.changes(HINTS, &self.partition, self.position.clone()).await?,
        };
        let page = tokio::time::timeout(store.client.limit(), changes.next()).await;
        let page = page.map_err(|_| crate::error::of_status(HINTS, None, ""))?;
        let Some(page) = page else { return Ok((Vec::new(), is_new)) };
        let page = page.map_err(|error| crate::error::failed(HINTS, &error))?;
        let hints = page.items().iter().filter_map(|change| change.current().cloned()).collect();
        self.position = changes.to_continuation_token().ok();
        self.changes = Some(changes);
        Ok((hints, is_new))
    }
}

/// The hints that this process reads.
pub(crate) struct Feeds {
    turns: Feed,
    activities: Feed,
}

impl Default for Feeds {
    fn default() -> Self {
        Self { turns: Feed::of(layout::ready(0)), activities: Feed::of(layout::work()) }
    }
}

impl Feeds {
    /// The time at which the next page is due.
    pub(crate) fn due(&self, roles: &Roles) -> Option<u64> {
        let turns = roles.turns.then_some(self.turns.due);
        turns.into_iter().chain(roles.takes_activities().then_some(self.activities.due)).min()
    }
}

impl Store {
    /// Reads the hints that are due, of the kinds of work that this process takes.
    pub(crate) async fn read_hints(self: &Arc<Self>, seeker: &mut Seeker) {
        let roles = self.roles();
        if roles.turns {
            self.read_feed(&mut seeker.feeds.turns, |store, hint| store.hinted_turn(hint)).await;
        }
        if roles.takes_activities() {
            self.read_feed(&mut seeker.feeds.activities, |store, hint| store.hinted_activity(hint)).await;
        }
    }

    async fn read_feed(
        self: &Arc<Self>,
        feed: &mut Feed,
        keep: impl Fn(&Self, Value) -> Result<bool, serde_json::Error>,
    ) {
        let now = self.now();
        if now < feed.due {
            return;
        }
        let longest = self.poll_interval_ms.max(SHORTEST_MS);
        let pause_ms = match feed.read(self).await {
            Ok((hints, is_new)) => {
                let pause_ms = feed.pace.pause_ms(now, !hints.is_empty(), longest);
                let mut is_kept = false;
                for hint in hints {
                    match keep(self, hint) {
                        Ok(kept) => is_kept |= kept,
                        // The text of the error may quote the input of an activity.
                        Err(_) => {
                            tracing::debug!(target: "duroxide::providers::cosmosdb", "a hint is not readable")
                        }
                    }
                }
                if is_new {
                    self.repair_soon().await;
                }
                if is_kept || is_new {
                    self.ready.wake();
                }
                pause_ms
            }
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "hints were not read");
                longest
            }
        };
        feed.due = now.saturating_add(pause_ms);
    }

    /// Keeps a hint of a message, if this process serves its slot or the instance is offered.
    fn hinted_turn(&self, hint: Value) -> Result<bool, serde_json::Error> {
        let hint = serde_json::from_value::<Hint<TurnHint>>(hint)?.d;
        let now = self.now();
        let is_meant = hint.by != self.own
            && (hint.is_offer
                || locked(&self.fleet).serves(slot_of(&hint.instance), now, self.time.monotonic_ms()));
        if is_meant {
            self.ready.hinted(&hint, now);
        }
        Ok(is_meant)
    }

    /// Keeps the activities of a hint, if this process is the worker that looks for them.
    fn hinted_activity(&self, hint: Value) -> Result<bool, serde_json::Error> {
        let ActivityHint { by, is_offer, activities } = serde_json::from_value::<Hint<ActivityHint>>(hint)?.d;
        let (now, roles) = (self.now(), self.roles());
        let mut is_kept = false;
        if by == self.own {
            return Ok(false);
        }
        for HintedActivity { etag, item } in activities {
            let Some(address) = item.address() else { continue };
            let slot = slot_of(&address.id);
            let works = |group: &String| is_offer || locked(&self.fleet).works(slot, group, Some(by), now);
            let mut filters = roles.activities.iter();
            if !filters.any(|(group, tags)| tags.matches(item.tag.as_deref()) && works(group)) {
                continue;
            }
            is_kept |= match etag.is_empty() {
                true => self.ready.found_activity(&address, &item, 0),
                false => self.ready.hinted_activity(&address, &item, &etag),
            };
        }
        Ok(is_kept)
    }

    /// Stores messages of an instance. Meanwhile the runtime that serves the instance gets hints, unless this process serves it.
    pub(crate) async fn announced<T>(
        &self,
        address: &Address,
        messages: &[&Item],
        write: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        self.tails.forget(&address.id);
        let (written, ()) = match self.owns(address) {
            true => (write.await, ()),
            false => futures::join!(write, self.hint_messages(address, messages)),
        };
        if locked(&self.covered).turns {
            // Also after an error: the write may be applied.
            for message in messages {
                self.ready.arrived(&address.id, &message.id, message.visible_at, message.sequence);
            }
        }
        written
    }

    /// Sends a hint of messages to the runtime that serves the instance. A hint of one message makes it read all of them.
    pub(crate) async fn hint_messages(&self, address: &Address, messages: &[&Item]) {
        let soon = self.now().saturating_add(HORIZON_MS);
        let first = messages.iter().filter(|message| message.visible_at <= soon);
        if let Some(message) = first.min_by_key(|message| message.visible_at) {
            let hint = TurnHint {
                instance: address.id.clone(),
                message: message.id.clone(),
                visible_at: message.visible_at,
                sequence: message.sequence,
                by: self.own,
                is_offer: false,
            };
            self.hint_turn(&hint).await;
        }
    }

    /// Whether no other runtime needs hints of work of this instance.
    pub(crate) fn owns(&self, address: &Address) -> bool {
        self.roles().turns && locked(&self.fleet).owns(slot_of(&address.id), self.time.monotonic_ms())
    }

    pub(crate) async fn hint_turn(&self, hint: &TurnHint) {
        self.hint(layout::ready(0), hint).await;
    }

    /// Sends hints of activities that no waiting fetch of this process takes. `is_ahead`: a worker of this process has just
    /// completed an activity and fetches next.
    pub(crate) async fn hint_activity(&self, activities: &[(&Item, Option<&String>)], is_ahead: bool) {
        let has_role = self.roles().takes_activities();
        if activities.is_empty() || (has_role && !locked(&self.fleet).has_other_workers(self.now())) {
            return;
        }
        let mut free = self.seats.waiting_workers();
        let mut is_ahead = is_ahead;
        let mut left = Vec::new();
        for (item, etag) in activities {
            let seat = free.iter().position(|tags| tags.matches(item.tag.as_deref()));
            match seat {
                Some(seat) => drop(free.swap_remove(seat)),
                None if std::mem::take(&mut is_ahead) => {}
                None => left.push((*item, *etag)),
            }
        }
        for part in left.chunks(MOST_ACTIVITIES) {
            let mut bytes = 0;
            let hinted = part.iter().map(|(item, etag)| {
                bytes += item.d.len();
                match etag.filter(|etag| !etag.is_empty() && bytes <= MOST_BYTES) {
                    Some(etag) => HintedActivity { etag: etag.clone(), item: (*item).clone() },
                    None => {
                        let item = Item { d: String::new(), ..(*item).clone() };
                        HintedActivity { etag: String::new(), item }
                    }
                }
            });
            let hint = ActivityHint { by: self.own, is_offer: false, activities: hinted.collect() };
            self.hint(layout::work(), &hint).await;
        }
    }

    /// Sends all other workers a hint of an activity that a worker of this process cannot run.
    pub(crate) async fn hint_offered_activity(&self, item: &Item, etag: &str) {
        let hinted = HintedActivity { etag: etag.to_string(), item: item.clone() };
        let hint = ActivityHint { by: self.own, is_offer: true, activities: vec![hinted] };
        self.hint(layout::work(), &hint).await;
    }

    /// Writes a hint. A lost hint delays its work, which the repair query finds.
    async fn hint(&self, partition: String, content: &impl Serialize) {
        let id = self.uid().to_string();
        let hint = Hint { id, partition: partition.clone(), t: "n".to_string(), d: content, ttl: LIFE };
        let written = match Op::create(&hint) {
            Ok(create) => self.client.batch(&partition, vec![create]).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "a hint was not written");
        }
    }
}
