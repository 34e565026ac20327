//! Hand-offs of the items that a batch stores: the items that idle fetches of this process receive, and the queues of the other
//! items.
//!
//! An item that is handed off is stored as leased. Without a hand-off the next poll would find it and write its lease in a second
//! transaction.

use crate::ask::{ActivityAsk, Ask};
use crate::batch::Batch;
use crate::db::span;
use crate::leased::{ParkedActivityFetches, ParkedTurnFetches};
use crate::parked::{Caller, Fetch, ParkedFetches};
use crate::request::{Commit, Lease};
use crate::transaction::{ActivityHandOffs, TurnHandOffs};
use outlast_provider::{Entropy, ScheduledActivityIdentifier};
use outlast_provider_kit::queue::PerQueue;
use outlast_provider_kit::token::Secret;
use outlast_provider_kit::{ActivityRow, MessageRow};
use std::collections::HashSet;
use std::ops::Range;

/// The hand-offs of one queue in one transaction.
#[derive(Debug)]
pub(crate) struct HandOffs<A, C> {
    pub(crate) fetches: Vec<Fetch<A, C>>,
    pub(crate) hand_offs: Vec<HandOff>,
}

/// An item that is leased to a fetch when it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandOff {
    /// The index of the item among those that could be handed off.
    pub(crate) item: usize,
    /// The index of the fetch.
    pub(crate) fetch: usize,
    pub(crate) secret: Secret,
}

impl<A, C> Default for HandOffs<A, C> {
    fn default() -> Self {
        Self { fetches: Vec::new(), hand_offs: Vec::new() }
    }
}

impl<A: Ask, C> HandOffs<A, C> {
    /// Secrets and durations of the leases of these items, as columns.
    pub(crate) fn columns(&self, items: Range<usize>) -> (Vec<Option<Vec<u8>>>, Vec<i64>) {
        let (mut secrets, mut lock_ms) = (vec![None; items.len()], vec![0; items.len()]);
        for hand_off in self.hand_offs.iter().filter(|hand_off| items.contains(&hand_off.item)) {
            let place = hand_off.item - items.start;
            secrets[place] = Some(hand_off.secret.to_vec());
            lock_ms[place] = span(self.fetches[hand_off.fetch].ask.lock_ms());
        }
        (secrets, lock_ms)
    }
}

/// Hands each item to an eligible tried fetch: to a fetch that already has an item and takes more items, or to the fetch that has
/// been parked for longest.
fn hand_off<A: Ask, C: Caller, T>(
    parked: &mut ParkedFetches<A, C>,
    items: impl Iterator<Item = T>,
    may_have: impl Fn(&A, &T) -> bool,
    entropy: &dyn Entropy,
) -> HandOffs<A, C> {
    let mut all = HandOffs::default();
    if !parked.takes_hand_offs() {
        return all;
    }
    let mut taken: Vec<usize> = Vec::new();
    for (item, row) in items.enumerate() {
        let takes_more = |fetch: &usize| {
            taken[*fetch] < all.fetches[*fetch].ask.wants() && may_have(&all.fetches[*fetch].ask, &row)
        };
        let chosen = (0..taken.len()).rev().find(takes_more);
        let fetch = chosen.or_else(|| {
            all.fetches.push(parked.take_tried(|ask| may_have(ask, &row))?);
            taken.push(0);
            Some(taken.len() - 1)
        });
        if let Some(fetch) = fetch {
            taken[fetch] += 1;
            all.hand_offs.push(HandOff { item, fetch, secret: entropy.next_u128().to_be_bytes() });
        }
    }
    all
}

/// Hands off the first turns of instances that begin with this batch. Such a turn is pinned to no version, so every fetch is
/// eligible.
pub(crate) fn hand_off_turns(
    parked: &mut ParkedTurnFetches,
    batch: &Batch,
    entropy: &dyn Entropy,
) -> TurnHandOffs {
    hand_off(parked, batch.beginnings().into_iter(), |_, row| row.is_some(), entropy)
}

/// Hands off activities that turns of this batch schedule and do not cancel. The server decides which process is eligible for an
/// activity with a session.
pub(crate) fn hand_off_activities(
    parked: &mut ParkedActivityFetches,
    batch: &Batch,
    entropy: &dyn Entropy,
) -> ActivityHandOffs {
    let may_have = |ask: &ActivityAsk, row: &&ActivityRow| {
        row.session_id.is_none() && ask.tags.matches(row.tag.as_deref()) && !batch.cancels(row)
    };
    hand_off(parked, batch.scheduled(), may_have, entropy)
}

/// The items of a batch.
impl Batch {
    /// The queues in which the batch makes an item fetchable, besides `handed_off` starts and scheduled activities. Messages
    /// that came while a turn was leased are reported by the server instead.
    pub(crate) fn frees(&self, handed_off: PerQueue<usize>) -> PerQueue<bool> {
        PerQueue {
            turns: self.frees_turns(handed_off.turns),
            activities: self.frees_activities(handed_off.activities),
        }
    }

    /// Whether the batch makes more turns fetchable than the `handed_off` starts.
    fn frees_turns(&self, handed_off: usize) -> bool {
        let queues = |commit: &Commit| match &commit.plan {
            Some(plan) => plan.messages.iter().any(|row| row.not_before == 0),
            None => commit.completion.is_some(),
        };
        let messages = self.messages.iter().filter(|message| message.delay_ms == 0).count();
        let starts = self.starts.iter().filter(|start| start.delay_ms == 0).count();
        messages + starts > handed_off || self.commits.iter().any(queues) || self.gives_back().turns
    }

    /// Whether the batch makes more activities fetchable than the `handed_off` activities.
    fn frees_activities(&self, handed_off: usize) -> bool {
        !self.activities.is_empty()
            || self.scheduled().nth(handed_off).is_some()
            || self.gives_back().activities
    }

    /// The queues to which the batch gives leases back.
    pub(crate) fn gives_back(&self) -> PerQueue<bool> {
        let is_turn = |lease: &Lease| matches!(lease, Lease::Turn { .. });
        PerQueue {
            turns: self.abandons.iter().any(|abandon| is_turn(&abandon.lease)),
            activities: self.abandons.iter().any(|abandon| !is_turn(&abandon.lease)),
        }
    }

    /// For each message and then each start: its row, if it begins an instance at once. Each instance begins once.
    pub(crate) fn beginnings(&self) -> Vec<Option<&MessageRow>> {
        let mut known = HashSet::new();
        let messages = self.messages.iter().map(|message| {
            let begins = message.begins && message.delay_ms == 0 && message.most.is_none();
            begins.then_some(&message.row)
        });
        let starts = self.starts.iter().map(|start| {
            // If the instance of a start with messages exists already, the store delivers the messages only.
            (start.delay_ms == 0 && start.messages.is_empty()).then_some(&start.start)
        });
        messages.chain(starts).map(|row| row.filter(|row| known.insert(&row.instance_id))).collect()
    }

    /// Whether a turn of the batch cancels this activity.
    pub(crate) fn cancels(&self, row: &ActivityRow) -> bool {
        let is_it = |cancelled: &ScheduledActivityIdentifier| {
            cancelled.instance == row.instance_id
                && cancelled.execution_id == row.execution_id
                && cancelled.activity_id == row.activity_id
        };
        let plans = self.commits.iter().filter_map(|commit| commit.plan.as_ref());
        plans.flat_map(|plan| &plan.cancelled).any(is_it)
    }

    /// The activities that turns schedule, in the order in which they are stored.
    pub(crate) fn scheduled(&self) -> impl Iterator<Item = &ActivityRow> {
        self.commits.iter().filter_map(|commit| commit.plan.as_ref()).flat_map(|plan| &plan.activities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parked::{Reason, When};
    use crate::reply::Reply;
    use crate::request::{Attempts, Fence, Message, Request};
    use outlast_model::WorkItem;
    use outlast_provider::{OsEntropy, TagFilter};
    use outlast_provider_kit::{CommitPlan, MessageRow};
    use tokio::sync::oneshot;

    fn reply<T>() -> Reply<T> {
        Reply::new("test", oneshot::channel().0)
    }

    fn scheduled(session: Option<&str>, tag: Option<&str>) -> WorkItem {
        WorkItem::ActivityExecute {
            instance: "i".to_string(),
            execution_id: 1,
            id: 2,
            name: "A".to_string(),
            input: String::new(),
            session_id: session.map(ToString::to_string),
            tag: tag.map(ToString::to_string),
        }
    }

    /// A turn that schedules these activities.
    fn batch(activities: &[WorkItem]) -> Batch {
        let plan = CommitPlan::new(1, &[], activities, &[], Default::default(), vec![]).unwrap();
        let fence = Fence::Lease(Lease::Activity { secret: [0; 16], id: 1 });
        let mut batch = Batch::default();
        batch.push(Request::Commit(Box::new(Commit {
            fence,
            completion: None,
            plan: Some(plan),
            ahead: None,
            reply: reply(),
            attempts: Attempts::default(),
        })));
        batch
    }

    /// Fetches of `max_items` activities with these tags, new or tried.
    fn parked(asks: &[(usize, TagFilter)], is_new: bool) -> (ParkedActivityFetches, Vec<impl Sized>) {
        let mut parked = ParkedFetches::default();
        let mut callers = Vec::new();
        for (max_items, tags) in asks {
            let (sender, caller) = oneshot::channel();
            let ask = ActivityAsk { max_items: *max_items, lock_ms: 1, session: None, tags: tags.clone() };
            parked.on_fetch(Fetch { ask, parks: true, is_new, caller: sender });
            callers.push(caller);
        }
        (parked, callers)
    }

    /// Item and fetch of each hand-off.
    fn pairs(hand_offs: &ActivityHandOffs) -> Vec<(usize, usize)> {
        hand_offs.hand_offs.iter().map(|hand_off| (hand_off.item, hand_off.fetch)).collect()
    }

    #[test]
    fn hand_off_respects_order_and_tags() {
        let three = batch(&[scheduled(None, None), scheduled(None, Some("gpu")), scheduled(None, None)]);
        let (any, gpu) = (TagFilter::Any, TagFilter::tags(["gpu"]));
        /// The fetches, the pairs of item and fetch, and whether items are left for others.
        type Case<'a> = (&'a [(usize, TagFilter)], &'a [(usize, usize)], bool);
        let rows: [Case<'_>; 7] = [
            (&[], &[], true),
            (&[(1, any.clone())], &[(0, 0)], true),
            (&[(2, any.clone())], &[(0, 0), (1, 0)], true),
            (&[(9, any.clone())], &[(0, 0), (1, 0), (2, 0)], false),
            (&[(2, any.clone()), (9, any.clone())], &[(0, 0), (1, 0), (2, 1)], false),
            (&[(9, gpu.clone())], &[(1, 0)], true),
            (&[(9, gpu), (2, TagFilter::DefaultOnly)], &[(0, 0), (1, 1), (2, 0)], false),
        ];
        for (asks, expected, is_left) in rows {
            let (mut parked, _callers) = parked(asks, false);
            let hand_offs = hand_off_activities(&mut parked, &three, &OsEntropy);
            assert_eq!(pairs(&hand_offs), expected, "{asks:?}");
            let taken = PerQueue { turns: 0, activities: hand_offs.hand_offs.len() };
            assert_eq!(three.frees(taken).activities, is_left, "{asks:?}");
            assert_eq!(hand_offs.fetches.len() + parked.asks().count(), asks.len());
        }
    }

    #[test]
    fn hand_off_skips_activities_of_sessions_new_fetches_gone_callers_and_due_polls() {
        let of_session = batch(&[scheduled(Some("s"), None)]);
        let free = batch(&[scheduled(None, None)]);
        let any = [(1, TagFilter::Any)];
        let (mut tried, callers) = parked(&any, false);
        assert_eq!(pairs(&hand_off_activities(&mut tried, &of_session, &OsEntropy)), [], "session");
        let (mut new, _new_callers) = parked(&any, true);
        assert_eq!(pairs(&hand_off_activities(&mut new, &free, &OsEntropy)), [], "new fetch");
        let (mut due, _due_callers) = parked(&any, false);
        due.schedule_poll(Reason::RemoteChange, When::Now);
        assert_eq!(pairs(&hand_off_activities(&mut due, &free, &OsEntropy)), [], "a poll is due");
        drop(callers);
        assert_eq!(pairs(&hand_off_activities(&mut tried, &free, &OsEntropy)), [], "the caller is gone");
    }

    #[test]
    fn only_the_first_undelayed_start_of_an_instance_can_be_handed_off() {
        let message = |instance: &str, begins, delay_ms, most| {
            let row = MessageRow {
                instance_id: instance.to_string(),
                work_item: "{}".to_string(),
                not_before: 0,
                begins,
            };
            Request::Message(Message { row, begins, delay_ms, most, reply: reply() })
        };
        let mut batch = Batch::default();
        for request in [
            message("event", false, 0, None),
            message("late", true, 1, None),
            message("bounded", true, 0, Some(9)),
            message("twice", true, 0, None),
            message("twice", true, 0, None),
        ] {
            batch.push(request);
        }
        let begins: Vec<bool> = batch.beginnings().iter().map(Option::is_some).collect();
        assert_eq!(begins, [false, false, false, true, false]);
        let frees = |turns| batch.frees(PerQueue { turns, activities: 0 }).turns;
        assert!(frees(3) && !frees(4), "four messages are fetchable at once");
    }
}
