//! I7 as P4 promises it: while a process with the handlers runs, no available message waits longer than a lease. The terms beside the
//! lease are those of the runtime and the store: the pause after a failed fetch, the look for commits of other processes, and for
//! activities the workers and sessions that are in use. A busy file adds no term: it is free when the faults stop.

use super::Snapshot;
use super::snapshot::{ActivityRow, MessageRow};
use crate::client::STRAY;
use crate::shared::Shared;
use outlast_model::WorkItem;
use outlast_provider::Clock;
use std::collections::BTreeMap;

/// The longest pause of a dispatcher after failed fetches.
const DISPATCHER_PAUSE_MS: u64 = 3_000;
/// The longest body of an activity.
const LONGEST_BODY_MS: u64 = 8_000;
/// The time between two cleanups of sessions.
pub(crate) const CLEANUP_MS: u64 = 7_000;
/// Latencies of calls, and the time between two checks.
const LEEWAY_MS: u64 = 3_000;
/// A call or a node that stalled before the faults stopped goes on after this many leases at the latest.
const STALLED_LEASES: u64 = 3;

/// The items that were available at the last check, with the time at which a check first saw them available.
#[derive(Default)]
pub(crate) struct Liveness {
    available: BTreeMap<String, u64>,
    /// The time since which no item is left in the store.
    idle_since: Option<u64>,
    progress: Progress,
}

/// The time without a new event. Items that are taken in time, again and again, are no progress.
#[derive(Default)]
struct Progress {
    /// Events and ended executions at the last check.
    count: usize,
    /// When a check last saw a new one.
    since: u64,
    /// When each item was first due, in the order of the checks since then.
    due: BTreeMap<String, u64>,
    /// The longest term of the workers since then.
    workers_ms: u64,
}

/// Whether the wait for an event is within the promise.
#[derive(Debug, PartialEq, Eq)]
enum Wait {
    /// At most the time in which an item must be taken.
    Short,
    /// Longer, and at most the time for which workers may be in use.
    Long,
    /// Longer than that, in milliseconds.
    Broken(u64),
}

impl Progress {
    fn restart(&mut self, now: u64) {
        *self = Self { count: self.count, since: now, ..Self::default() };
    }

    /// Judges the time since the last event, or since the last item that is left was first due. `items` are pairs of an item and the time at
    /// which it is due.
    fn judge(
        &mut self,
        now: u64,
        count: usize,
        items: impl Iterator<Item = (String, u64)>,
        promise_ms: u64,
        workers_ms: u64,
    ) -> Wait {
        if count != self.count {
            self.count = count;
            self.restart(now);
        }
        self.workers_ms = self.workers_ms.max(workers_ms);
        let mut due = self.since;
        for (item, at) in items {
            due = due.max(*self.due.entry(item).or_insert(at));
        }
        match now.saturating_sub(due) {
            waited if waited <= promise_ms => Wait::Short,
            waited if waited <= promise_ms + self.workers_ms => Wait::Long,
            waited => Wait::Broken(waited),
        }
    }
}

impl Liveness {
    /// Checks the items of a healed world.
    pub(crate) fn check(&mut self, shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
        let (now, before) = (shared.now_ms(), std::mem::take(&mut self.available));
        if !shared.has_serving_node() || now < shared.healed_at_ms() + STALLED_LEASES * shared.plan.lease_ms {
            self.idle_since = None;
            self.progress.restart(now);
            return Ok(());
        }
        let store_now = shared.clock.now_ms();
        let bound = promise_ms(shared);
        let messages = snapshot.messages.iter().filter(|row| is_message_available(snapshot, row, store_now));
        let messages = messages.map(|row| (format!("message {}", row.text), bound));
        let activities = snapshot.activities.iter().filter(|row| is_activity_available(row, store_now));
        let for_workers = bound + workers_ms(shared, snapshot);
        let activities = activities.map(|row| {
            let ActivityRow { instance, execution_id, id, .. } = row;
            (format!("activity {id} of '{instance}', execution {execution_id}"), for_workers)
        });
        for (item, most) in messages.chain(activities) {
            let since = before.get(&item).copied().unwrap_or(now);
            if now - since > most {
                let text: String = item.chars().take(200).collect();
                return Err(format!("I7: no process took an available item for {} ms: {text}", now - since));
            }
            self.available.insert(item, since);
        }
        self.check_progress(shared, snapshot, now)?;
        self.check_idle(shared, snapshot, now)
    }

    /// An instance that has not ended gets an event within the promise and the terms of the workers after its last item was due.
    fn check_progress(&mut self, shared: &Shared, snapshot: &Snapshot, now: u64) -> Result<(), String> {
        if now <= shared.plan.last_action_ms() || !snapshot.holds.is_empty() {
            self.progress.restart(now);
            return Ok(());
        }
        let events: usize = snapshot.histories.values().map(|history| history.len()).sum();
        let ended = snapshot.executions.values().filter(|status| *status != "Running").count();
        let store_now = shared.clock.now_ms();
        let due = |visible_at: u64| (now + visible_at).saturating_sub(store_now);
        let exists = |row: &&MessageRow| snapshot.instances.contains_key(row.item.target_instance());
        let messages = snapshot.messages.iter().filter(exists);
        let messages = messages.map(|row| (format!("message {}", row.text), due(row.visible_at)));
        // An activity that failed is due again after a pause, for a number of deliveries that ends. A body may run for any time: while it
        // runs, each renewal of its lease restarts the wait.
        let activities = snapshot.activities.iter().map(|row| {
            let ActivityRow { instance, execution_id, id, attempts, locked_until, .. } = row;
            let at = if *locked_until > store_now { now } else { due(row.visible_at) };
            (format!("activity {id} {execution_id} {attempts} {locked_until} {instance}"), at)
        });
        let items = messages.chain(activities);
        let (promise_ms, workers_ms) = (promise_ms(shared), workers_ms(shared, snapshot));
        match self.progress.judge(now, events + ended, items, promise_ms, workers_ms) {
            Wait::Short => Ok(()),
            Wait::Long => {
                shared.tally().worlds_of_long_waits = 1;
                Ok(())
            }
            Wait::Broken(waited) => Err(format!(
                "I7: no event for {waited} ms after the last item was due. {}",
                super::ending::unfinished(shared, snapshot)
            )),
        }
    }

    /// An instance that has not ended has an item in the store, or waits for a client that has not sent its last message.
    fn check_idle(&mut self, shared: &Shared, snapshot: &Snapshot, now: u64) -> Result<(), String> {
        let is_ours = |row: &MessageRow| !row.item.target_instance().starts_with(STRAY);
        let is_empty = !snapshot.messages.iter().any(is_ours) && snapshot.activities.is_empty();
        let is_idle = is_empty && now > shared.plan.last_action_ms() && snapshot.holds.is_empty();
        if !is_idle || super::ending::unfinished_ids(snapshot).is_empty() {
            self.idle_since = None;
            return Ok(());
        }
        let since = *self.idle_since.get_or_insert(now);
        match now - since > promise_ms(shared) {
            true => Err(super::ending::unfinished(shared, snapshot)),
            false => Ok(()),
        }
    }
}

/// P4: one lease, and the stated terms.
pub(crate) fn promise_ms(shared: &Shared) -> u64 {
    let foreign_poll_ms = outlast_provider::saturating_ms(shared.plan.foreign_poll);
    shared.plan.lease_ms + DISPATCHER_PAUSE_MS + foreign_poll_ms + LEEWAY_MS
}

/// The longest time for which the workers may be in use: every earlier activity may run its body, and a session ends after three
/// idle leases.
pub(crate) fn workers_ms(shared: &Shared, snapshot: &Snapshot) -> u64 {
    let sessions =
        snapshot.sessions.len() as u64 + u64::from(snapshot.activities.iter().any(|row| row.has_session));
    snapshot.activities.len() as u64 * LONGEST_BODY_MS + sessions * (4 * shared.plan.lease_ms + CLEANUP_MS)
}

/// Whether a fetch must find this message: it is due and not leased, its instance is neither leased nor held, and exists or starts.
fn is_message_available(snapshot: &Snapshot, row: &MessageRow, now: u64) -> bool {
    let instance = row.item.target_instance();
    let starts = |row: &MessageRow| {
        matches!(row.item, WorkItem::StartOrchestration { .. })
            && row.item.target_instance() == instance
            && row.visible_at <= now
    };
    let is_free = row.visible_at <= now
        && row.locked_until <= now
        && snapshot.leases.get(instance).is_none_or(|until| *until <= now)
        && !snapshot.holds.contains(instance);
    is_free && (snapshot.instances.contains_key(instance) || snapshot.messages.iter().any(starts))
}

fn is_activity_available(row: &ActivityRow, now: u64) -> bool {
    row.visible_at <= now && row.locked_until <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits of checks every 2 s. An item of each check is due when this function says.
    fn waits(due: impl Fn(u64) -> u64, count: impl Fn(u64) -> usize) -> Vec<Wait> {
        let mut progress = Progress::default();
        let times = (1..=20_u64).map(|nth| nth * 2_000);
        let judge = |now| {
            let item = ("message a".to_string(), due(now));
            progress.judge(now, count(now), [item].into_iter(), 9_000, 8_000)
        };
        times.map(judge).collect()
    }

    #[test]
    fn item_that_is_taken_again_and_again_without_an_event_breaks_the_promise() {
        // Each delivery gives the message back with a pause, so that it is never available for long.
        let waits = waits(|now| now + 1_000, |_| 1);
        assert_eq!(waits.iter().filter(|wait| **wait == Wait::Short).count(), 6);
        assert_eq!(waits.iter().filter(|wait| **wait == Wait::Long).count(), 4);
        assert_eq!(waits[10], Wait::Broken(19_000));
    }

    #[test]
    fn wait_begins_when_the_last_item_is_due() {
        let waits = waits(|_| 30_000, |_| 1);
        assert_eq!(waits[18], Wait::Short, "8 s after the timer was due");
        assert_eq!(waits[19], Wait::Long);
    }

    #[test]
    fn activity_ahead_of_a_clock_that_was_set_back_is_available_from_its_time_on() {
        let row = "work i 1 2 500 false 0 0 - {}".to_string();
        let snapshot = super::super::Recorder::default().record(&[row]).unwrap();
        let available = [499, 500].map(|now| is_activity_available(&snapshot.activities[0], now));
        assert_eq!(available, [false, true]);
    }

    #[test]
    fn event_begins_the_wait_again() {
        let waits = waits(|_| 0, |now| usize::try_from(now / 8_000).unwrap());
        assert!(waits.iter().all(|wait| *wait == Wait::Short), "{waits:?}");
    }
}
