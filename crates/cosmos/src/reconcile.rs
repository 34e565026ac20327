//! The reconciler: it delivers messages between instances that their committers did not deliver.
//!
//! | rule | reason |
//! |---|---|
//! | A failed delivery puts the intent off: `at`, by which the query finds it, moves into the future, further with every failure. | Intents that fail are read and tried seldom, by all processes together. |
//! | A round ends after [`MOST_AT_ONCE`] intents or [`ROUND`]. The next one begins behind the last intent that it tried. | An intent that cannot be put off, because the partition of its sender does not answer, stays where it is and delays no other one. |
//! | Intents that have failed before have lanes of their own. | A target that never answers takes no lane from new messages. |
//!
//! Several processes do this at the same time. A second delivery finds the first one or its tombstone, and of two processes that put
//! the same intent off one is refused.

use crate::client::Op;
use crate::document::{Item, Versioned};
use crate::error::damaged;
use crate::limit;
use crate::number::{indexed, parameter};
use crate::outbox::{DELIVER, log_later};
use crate::sql;
use crate::store::{Store, locked};
use futures::StreamExt;
use metrics::gauge;
use outlast_provider::{ErrorClass, ProviderError, saturating_ms};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const RECONCILE: &str = "reconcile";

/// The longest pause between two searches for undelivered intents.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The intents that one round reads.
pub(crate) const MOST_AT_ONCE: usize = 1_000;

/// A round begins no delivery after this time.
const ROUND: Duration = Duration::from_secs(10);

/// The longest time of a request for a delivery.
const DELIVERY: Duration = Duration::from_secs(3);

/// The instances to which one round delivers at the same time, and those whose deliveries have failed before.
const LANES: usize = 16;
const LANES_OF_FAILED: usize = 16;

/// The first and the longest pause after a failed delivery of an intent. The pause doubles with every failure.
const FIRST_PUT_OFF: Duration = Duration::from_millis(10);
const LONGEST_PUT_OFF: Duration = Duration::from_secs(300);

/// Intents of one target that are put off at the same time.
const PUT_OFF_AT_ONCE: usize = 8;

/// The records of deletions are searched for in this interval.
const RECORDS_EVERY: Duration = Duration::from_secs(600);

/// The time of the oldest undelivered intent.
#[derive(Deserialize)]
struct Oldest {
    #[serde(with = "crate::number")]
    since: u64,
}

/// Undelivered intents for one instance.
type Group = Vec<Versioned<Item>>;

/// The state of a round.
struct Round {
    began: Instant,
    /// Partitions of senders that do not answer for now.
    failing: Mutex<HashSet<String>>,
    /// The time of the first intent that the round did not try.
    untried: Mutex<Option<u64>>,
}

impl Round {
    fn new() -> Self {
        Self { began: Instant::now(), failing: Mutex::default(), untried: Mutex::default() }
    }

    fn leaves(&self, group: &[Versioned<Item>]) {
        let first = group.iter().filter_map(|intent| intent.document.at).min();
        let mut untried = locked(&self.untried);
        *untried = [*untried, first].into_iter().flatten().min();
    }
}

/// The `at` at which the next round begins.
fn next_position(position: u64, last: Option<u64>, is_full: bool, untried: Option<u64>) -> u64 {
    let next = match (untried, last) {
        (Some(untried), _) => return untried,
        (None, Some(last)) if is_full => last,
        _ => return 0,
    };
    // More intents of one time than a round reads: the rest of them is read after the others.
    if next > position { next } else { next.saturating_add(1) }
}

impl Store {
    /// Delivers intents that their committer did not deliver, beginning at a position in their line. Returns whether there were
    /// some, and moves the position.
    pub(crate) async fn reconcile(self: &Arc<Self>, position: &mut u64) -> Result<bool, ProviderError> {
        let now = self.now();
        let threshold = saturating_ms(self.config.reconciler_age_threshold);
        // The oldest of all undelivered intents, also of those that are put off.
        let until = [("@until", parameter(indexed(now.saturating_sub(threshold))))];
        let oldest: Vec<Oldest> = self.client.query_all(RECONCILE, sql::INTENT_OLDEST, &until, 1).await?;
        let lag = oldest.first().map_or(0, |oldest| now.saturating_sub(oldest.since));
        gauge!("outlast_outbox_lag_seconds").set(Duration::from_millis(lag).as_secs_f64());
        if oldest.is_empty() {
            *position = 0;
            return Ok(false);
        }
        let parameters = [("@from", parameter(indexed(*position))), ("@now", parameter(indexed(now)))];
        let most = self.intents_at_once;
        let rows: Vec<serde_json::Value> =
            self.client.query_all(RECONCILE, sql::INTENTS, &parameters, most).await?;
        let is_full = rows.len() >= most;
        let last = rows.iter().filter_map(|row| row["at"].as_u64()).max();
        let (failed, new): (Vec<Group>, Vec<Group>) = by_target(rows.into_iter().filter_map(decoded))
            .into_iter()
            .partition(|group| group.iter().any(|intent| intent.document.attempts > 0));
        let round = Round::new();
        let deliveries = |groups: Vec<Group>| -> Vec<_> {
            groups.into_iter().map(|group| self.deliver_in(group, &round)).collect()
        };
        futures::join!(all(deliveries(new), LANES), all(deliveries(failed), LANES_OF_FAILED));
        let untried = *locked(&round.untried);
        *position = next_position(*position, last, is_full, untried);
        Ok(true)
    }

    /// Delivers intents to one instance, unless the round is over.
    async fn deliver_in(&self, group: Group, round: &Round) {
        match round.began.elapsed() < ROUND {
            true => limit::within(DELIVERY, self.deliver_to_one(group, round)).await,
            false => round.leaves(&group),
        }
    }

    /// Delivers intents to one instance, until the instance does not accept them for now.
    async fn deliver_to_one(&self, group: Group, round: &Round) {
        let mut left = group.into_iter();
        while let Some(found) = left.next() {
            let intent = &found.document;
            if locked(&round.failing).contains(&intent.partition) {
                continue;
            }
            match self.is_committed(intent).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    // The text of an error about a damaged document may quote it.
                    let is_damaged = ErrorClass::of(&error) == ErrorClass::Damaged;
                    let sender = || damaged(DELIVER, format!("the sender of intent '{}'", intent.id));
                    let error = if is_damaged { sender() } else { error };
                    self.sender_failed(found, &error, round).await;
                    continue;
                }
            }
            if let Err(error) = self.hand_over(intent).await {
                log_later(intent, &error);
                if error.is_retryable() {
                    let later = std::iter::once(found).chain(left).map(|intent| self.put_off(intent));
                    return all(later.collect(), PUT_OFF_AT_ONCE).await;
                }
                self.put_off(found).await;
            } else if let Err(error) = self.remove_intent(intent).await {
                self.sender_failed(found, &error, round).await;
            }
        }
    }

    /// The partition of a sender refuses a request, or does not answer for now.
    async fn sender_failed(&self, intent: Versioned<Item>, error: &ProviderError, round: &Round) {
        log_later(&intent.document, error);
        if error.is_retryable() {
            locked(&round.failing).insert(intent.document.partition.clone());
        } else {
            self.put_off(intent).await;
        }
    }

    /// Moves the next attempt at an intent into the future.
    async fn put_off(&self, found: Versioned<Item>) {
        let failures = found.document.attempts.saturating_add(1);
        let at =
            self.now().saturating_add(saturating_ms(pause_after(failures, self.config.reconciler_interval)));
        let next = Item { attempts: failures, at: Some(indexed(at)), ..found.document };
        let replaced = match Op::replace(&next.id, &next, Some(&found.etag)) {
            Ok(replace) => self.client.batch(&next.partition, vec![replace]).await,
            Err(error) => Err(error),
        };
        // Another process may have delivered the intent, or put it off. A write that fails leaves it for the next round.
        if let Err(error) = replaced {
            tracing::debug!(target: "duroxide::providers::cosmosdb::outbox", %error, "an intent is not put off");
        }
    }
}

/// Runs futures, some at the same time.
async fn all(futures: Vec<impl Future<Output = ()>>, at_once: usize) {
    futures::stream::iter(futures).buffer_unordered(at_once).collect().await
}

/// The pause after this number of failures.
fn pause_after(failures: u32, interval: Duration) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(31));
    interval.max(FIRST_PUT_OFF).saturating_mul(doubled).min(LONGEST_PUT_OFF)
}

/// The intents by their targets: a target that does not answer is asked once in a round.
fn by_target(found: impl Iterator<Item = Versioned<Item>>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<Option<String>, usize> = HashMap::new();
    for intent in found {
        let target = intent.document.to.as_ref().map(|target| target.instance.clone());
        let place = *places.entry(target).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(intents) => intents.push(intent),
            None => groups.push(vec![intent]),
        }
    }
    groups
}

/// An intent of a search; `None` if it is damaged.
fn decoded(row: serde_json::Value) -> Option<Versioned<Item>> {
    let id = row["id"].as_str().unwrap_or("?").to_string();
    let decoded = serde_json::from_value(row);
    if decoded.is_err() {
        // The text of the error may quote the message.
        tracing::warn!(target: "duroxide::providers::cosmosdb::outbox", intent = %id, "an intent does not decode");
    }
    decoded.ok()
}

/// Searches for undelivered intents, often at first and less often while there are none, and for deletions whose process died.
pub(crate) async fn reconciler(store: std::sync::Weak<Store>, interval: Duration) {
    let (mut pause, mut position) = (interval, 0);
    let mut records_at: Option<Instant> = None;
    loop {
        tokio::time::sleep(pause).await;
        let Some(store) = store.upgrade() else { return };
        pause = match store.reconcile(&mut position).await {
            Ok(true) => interval,
            Ok(false) => (2 * pause).min(LONGEST_PAUSE.max(interval)),
            Err(error) => {
                tracing::debug!(target: "duroxide::providers::cosmosdb::outbox", %error, "reconciling failed");
                (2 * pause).min(LONGEST_PAUSE.max(interval))
            }
        };
        if records_at.is_none_or(|at| at.elapsed() >= RECORDS_EVERY) {
            records_at = Some(Instant::now());
            if let Err(error) = store.finish_deletions().await {
                tracing::debug!(target: "duroxide::providers::cosmosdb", %error, "deletions are completed later");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_after_a_failure_doubles_up_to_five_minutes() {
        let interval = Duration::from_secs(2);
        let pauses = [1, 2, 3, 8, 9, u32::MAX].map(|failures| pause_after(failures, interval).as_secs());
        assert_eq!(pauses, [2, 4, 8, 256, 300, 300]);
        assert_eq!(pause_after(1, Duration::ZERO), FIRST_PUT_OFF);
    }

    #[test]
    fn a_round_begins_where_the_last_one_ended_and_passes_a_time_that_fills_a_round() {
        assert_eq!(next_position(0, None, false, None), 0);
        assert_eq!(next_position(5, Some(9), false, None), 0, "the end of the line");
        assert_eq!(next_position(5, Some(9), true, None), 9);
        assert_eq!(next_position(9, Some(9), true, None), 10, "a round of one time");
        assert_eq!(next_position(5, Some(9), true, Some(7)), 7, "the first that was not tried");
    }
}
