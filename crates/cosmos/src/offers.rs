//! Offers: the owner of a dispatch slot sends all runtimes a hint of work that it cannot run itself, because the work needs another
//! version of the program or another handler. Without an offer such work would wait until it is overdue.

use crate::document::{Address, Item};
use crate::hints::TurnHint;
use crate::message::Waiting;
use crate::slots::{LEASE_MS, slot_of};
use crate::store::{Store, locked};
use std::collections::HashMap;
use std::sync::Mutex;

/// The same message is offered again after this time: runtimes may have joined.
const AGAIN_MS: u64 = 2 * LEASE_MS;

/// The most instances whose offers are remembered.
const MOST: usize = 4_096;

/// The last offer of each instance: the number of its newest message, and the time of the offer.
#[derive(Default)]
pub(crate) struct Offers {
    made: Mutex<HashMap<String, (u64, u64)>>,
}

impl Offers {
    /// Whether the message is offered now. The answer counts as an offer.
    fn is_due(&self, instance: &str, sequence: u64, now: u64) -> bool {
        let mut made = locked(&self.made);
        let is_same = |(offered, at): &(u64, u64)| *offered == sequence && now.abs_diff(*at) < AGAIN_MS;
        if made.get(instance).is_some_and(is_same) {
            return false;
        }
        if made.len() >= MOST {
            made.retain(|_, (_, at)| now.abs_diff(*at) < AGAIN_MS);
        }
        if made.len() < MOST {
            made.insert(instance.to_string(), (sequence, now));
        }
        true
    }
}

impl Store {
    /// Offers an instance whose version the filter of a fetch refuses.
    pub(crate) async fn offer(&self, address: &Address, visible: &[Waiting], now: u64) {
        let Some(newest) = visible.iter().max_by_key(|message| message.item.sequence) else { return };
        let sequence = newest.item.sequence;
        if self.may_offer(address, now) && self.offers.is_due(&address.id, sequence, now) {
            self.hint_turn(&self.offer_of(address, &newest.item.id, newest.visible_at, sequence)).await;
        }
    }

    /// Offers an instance whose turn was given back until a time; returns whether it made an offer.
    pub(crate) async fn offer_later(&self, address: &Address, messages: &[String], until: u64) -> bool {
        let Some(first) = messages.first().filter(|_| self.may_offer(address, self.now())) else {
            return false;
        };
        self.hint_turn(&self.offer_of(address, first, until, 0)).await;
        true
    }

    fn offer_of(&self, address: &Address, message: &str, visible_at: u64, sequence: u64) -> TurnHint {
        TurnHint {
            instance: address.id.clone(),
            message: message.to_string(),
            visible_at,
            sequence,
            by: self.own,
            is_offer: true,
        }
    }

    /// Whether this process serves the instance, and other runtimes exist to which it can offer it. A runtime that cannot run
    /// offered work does not offer it again.
    fn may_offer(&self, address: &Address, now: u64) -> bool {
        let fleet = locked(&self.fleet);
        fleet.is_known()
            && fleet.has_other_turn_takers(now)
            && fleet.serves(slot_of(&address.id), now, self.time.monotonic_ms())
    }

    /// Offers an activity that a worker gave back with a delay; returns whether it made an offer.
    pub(crate) async fn offer_activity(&self, activity: &Item, etag: &str) -> bool {
        let has_others = {
            let fleet = locked(&self.fleet);
            fleet.is_known() && fleet.has_other_workers(self.now())
        };
        if has_others {
            self.hint_offered_activity(activity, etag).await;
        }
        has_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_offered_once_until_runtimes_may_have_joined() {
        let offers = Offers::default();
        assert!(offers.is_due("i", 1, 0) && !offers.is_due("i", 1, AGAIN_MS - 1));
        assert!(offers.is_due("i", 1, AGAIN_MS), "runtimes may have joined");
        assert!(offers.is_due("i", 2, AGAIN_MS), "another message");
        assert!(offers.is_due("j", 2, AGAIN_MS), "another instance");
    }
}
