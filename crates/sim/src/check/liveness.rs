//! I7 as P4 promises it: while a process with the handlers runs, no available message waits longer than a lease. The terms beside the
//! lease are those of the runtime and the store: the pause after a failed fetch, the look for commits of other processes, and for
//! activities the workers and sessions that are in use.

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
}

impl Liveness {
    /// Checks the items of a healed world.
    pub(crate) fn check(&mut self, shared: &Shared, snapshot: &Snapshot) -> Result<(), String> {
        let (now, before) = (shared.now_ms(), std::mem::take(&mut self.available));
        if !shared.has_serving_node() || now < shared.healed_at_ms() + STALLED_LEASES * shared.plan.lease_ms {
            self.idle_since = None;
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
        self.check_idle(shared, snapshot, now)
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
