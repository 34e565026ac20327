//! Transitions of the scheduler that follow from commits, notifications and failures.

use super::{ASK_NEXT_DUE_EVERY, Scheduler};
use crate::ask::{ActivityAsk, Ask, TurnAsk};
use crate::leased::{ActivityFetch, LeaseSender, RawActivity, RawTurn, TurnFetch};
use crate::notify::{Forward, Hops, PutOff, Wants};
use crate::parked::{Caller, Fetch, GroupDone, ParkedFetches, Reason, When, due_in};
use outlast_model::defect::{self, Defect};
use outlast_provider_kit::queue::PerQueue;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) type TurnGroupDone = GroupDone<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityGroupDone = GroupDone<ActivityAsk, LeaseSender<Vec<RawActivity>>>;
pub(crate) type TurnHandOffDone = HandOffDone<TurnAsk, LeaseSender<RawTurn>>;
pub(crate) type ActivityHandOffDone = HandOffDone<ActivityAsk, LeaseSender<Vec<RawActivity>>>;

/// The effects of a finished transaction.
pub(crate) struct LaneDone {
    /// For each queue, the groups of fetches that were polled for.
    pub(crate) polls: PerQueue<Vec<TurnGroupDone>, Vec<ActivityGroupDone>>,
    /// For each queue, the fetches of hand-offs in their order.
    pub(crate) hand_offs: PerQueue<Vec<TurnHandOffDone>, Vec<ActivityHandOffDone>>,
    /// The counts of changes when the polls started.
    pub(crate) changes: PerQueue<u64>,
    /// The queues in which the transaction made an item fetchable.
    pub(crate) frees: PerQueue<bool>,
    /// The time until a message or activity that the transaction stored with a delay becomes visible.
    pub(crate) visible_in_ms: Option<u64>,
    /// Whether messages wait for an instance whose turn was committed.
    pub(crate) has_more_messages: bool,
    /// Whether leases of turns ended.
    pub(crate) ends_turns: bool,
    /// Whether the polls asked for the time at which an item becomes fetchable.
    pub(crate) asked_next_due: bool,
}

/// The result of a hand-off for its fetch.
pub(crate) enum HandOffDone<A, C> {
    Served { lock_ms: u64 },
    Refused(Fetch<A, C>),
}

impl Scheduler {
    /// Another process notifies this process, after `hops` processes that found nothing.
    pub(crate) fn on_notification(&mut self, queues: PerQueue<bool>, hops: Hops) {
        if defect::is_on(Defect::NotificationUnseen) {
            return;
        }
        let unusable = PerQueue {
            turns: queues.turns.then(|| self.parked.turns.on_notification(hops)).flatten(),
            activities: queues.activities.then(|| self.parked.activities.on_notification(hops)).flatten(),
        };
        self.forward(unusable);
        self.wake.lane = true;
    }

    /// Schedules polls because these queues may have an item that no poll of this process has seen.
    pub(crate) fn on_remote_change(&mut self, queues: PerQueue<bool>) {
        self.schedule_polls(queues, Reason::RemoteChange, When::Now);
        self.wake.lane = true;
    }

    /// Schedules polls of both queues: a turn or activity becomes fetchable in `ms` milliseconds.
    pub(crate) fn on_due_in(&mut self, ms: u64, now: Instant) {
        const LONGEST_MS: u64 = 60_000;
        let at = now + due_in(ms.min(LONGEST_MS));
        self.schedule_polls(PerQueue::BOTH, Reason::Due, When::At(at));
        self.wake.lane = true;
    }

    /// The listener has read the notifications that other processes want; `None`: the listener has lost its connection.
    pub(crate) fn on_listeners(&mut self, others: Option<Wants>) {
        self.others = others;
    }

    /// The notifications that the listener is to forward.
    pub(crate) fn take_forward(&mut self) -> Forward {
        std::mem::take(&mut self.forward)
    }

    /// The queues whose notification was put off and is due now. When the store is closed, all are due.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> PerQueue<bool> {
        let is_closed = self.is_closed;
        let is_due = |put_off: &mut PutOff| match is_closed {
            true => std::mem::take(put_off).due_at().is_some(),
            false => put_off.take_due(now),
        };
        PerQueue { turns: is_due(&mut self.put_off.turns), activities: is_due(&mut self.put_off.activities) }
    }

    /// The time at which the next put-off notification is due.
    pub(crate) fn overdue_at(&self) -> Option<Instant> {
        [self.put_off.turns.due_at(), self.put_off.activities.due_at()].into_iter().flatten().min()
    }

    /// A transaction has notified no other process of items of these queues, and may be committed. Another process is notified
    /// later, if items still wait.
    pub(crate) fn put_off(&mut self, queues: PerQueue<bool>, now: Instant) {
        let was_due_at = self.overdue_at();
        if queues.turns {
            self.put_off.turns.on_item(now);
        }
        if queues.activities {
            self.put_off.activities.on_item(now);
        }
        self.wake.listener |= self.overdue_at() != was_due_at;
    }

    /// The server has answered the polls of a transaction, or the transaction has failed.
    pub(crate) fn on_polls_ended(&mut self, polls: PerQueue<bool>) {
        if polls.turns {
            self.parked.turns.on_poll_ended();
        }
        if polls.activities {
            self.parked.activities.on_poll_ended();
        }
    }

    /// A transaction is committed. Returns the fetches that do not wait, whose callers get an empty reply.
    pub(crate) fn on_lane_done(
        &mut self,
        done: LaneDone,
        now: Instant,
    ) -> PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>> {
        if let Some(ms) = done.visible_in_ms {
            self.on_due_in(ms, now);
        }
        self.on_local_commit(done.frees);
        self.on_hand_offs_done(done.hand_offs, now);
        // The polls of the transaction have seen its own change.
        let changes = done.changes.zip(done.frees).map(|(changes, frees)| changes + u64::from(frees));
        let changes = match defect::is_on(Defect::PollSeesLaterCommits) {
            true => {
                PerQueue { turns: self.parked.turns.changes(), activities: self.parked.activities.changes() }
            }
            false => changes,
        };
        let periodic = match done.asked_next_due {
            true => self.poll_interval(),
            false => ASK_NEXT_DUE_EVERY,
        };
        let mut empty = PerQueue { turns: Vec::new(), activities: Vec::new() };
        for group in done.polls.turns {
            self.before_poll_done(&group, now);
            let effects = self.parked.turns.on_poll_done(group, changes.turns, periodic, now);
            self.forward(PerQueue { turns: effects.forward, activities: None });
            empty.turns.extend(effects.empty);
        }
        for group in done.polls.activities {
            self.before_poll_done(&group, now);
            let effects = self.parked.activities.on_poll_done(group, changes.activities, periodic, now);
            self.forward(PerQueue { turns: None, activities: effects.forward });
            empty.activities.extend(effects.empty);
        }
        if done.has_more_messages && !done.frees.turns {
            // Messages came while a turn was leased, or an outcome waits for a turn: no poll has seen them.
            self.on_remote_change(PerQueue::TURNS);
        }
        if done.ends_turns && self.parked.turns.changes() != changes.turns {
            // A message that was stored meanwhile found a lease, and may be too late for the commit to see it. The poll is soon and
            // not immediate: such a message is rare, and a fetch receives no hand-off while a poll for it runs.
            const SOON: Duration = Duration::from_millis(20);
            self.schedule_polls(PerQueue::TURNS, Reason::Due, When::At(now + SOON));
        }
        self.wake.lane = true;
        empty
    }

    /// The transaction of these fetches failed: they are parked as they were.
    pub(crate) fn on_polls_lost(&mut self, fetches: PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>>) {
        self.parked.turns.on_poll_lost(fetches.turns.into_iter());
        self.parked.activities.on_poll_lost(fetches.activities.into_iter());
    }

    /// The server cannot be reached: parked fetches are not polled for until a pause is over. Returns the new fetches, whose
    /// callers get an error.
    pub(crate) fn on_server_away(&mut self, now: Instant) -> PerQueue<Vec<TurnFetch>, Vec<ActivityFetch>> {
        const PAUSE: Duration = Duration::from_millis(200);
        self.paused_until = Some(now + PAUSE);
        PerQueue {
            turns: self.parked.turns.on_server_away(),
            activities: self.parked.activities.on_server_away(),
        }
    }

    /// A transaction of this process has made an item fetchable in these queues.
    fn on_local_commit(&mut self, frees: PerQueue<bool>) {
        if !defect::is_on(Defect::LocalCommitUnseen) {
            self.schedule_polls(frees, Reason::LocalCommit, When::Now);
        }
    }

    /// Parks the fetches whose hand-off was refused again, and schedules polls for the ends of the leases.
    fn on_hand_offs_done(
        &mut self,
        done: PerQueue<Vec<TurnHandOffDone>, Vec<ActivityHandOffDone>>,
        now: Instant,
    ) {
        let (turns_end_in, is_refused) = hand_offs_done(&mut self.parked.turns, done.turns, now);
        if is_refused {
            // No process was notified of the turn, which may be pinned to a version that runs elsewhere.
            self.forward(PerQueue { turns: Some(0), activities: None });
        }
        let (activities_end_in, _) = hand_offs_done(&mut self.parked.activities, done.activities, now);
        for lock_ms in turns_end_in.into_iter().chain(activities_end_in) {
            self.on_due_in(lock_ms, now);
        }
    }

    /// Schedules a poll for the end of the leases of a group, and wakes the listener for unserved fetches.
    fn before_poll_done<A, C>(&mut self, group: &GroupDone<A, C>, now: Instant) {
        if group.is_served {
            // Leases may end without a commit, and then their turns and activities are fetchable again.
            self.on_due_in(group.lock_ms, now);
        }
        // The listener registers fetches that have become idle.
        self.wake.listener |= !group.unserved.is_empty();
    }

    fn schedule_polls(&mut self, queues: PerQueue<bool>, reason: Reason, when: When) {
        if queues.turns {
            self.parked.turns.schedule_poll(reason, when);
        }
        if queues.activities {
            self.parked.activities.schedule_poll(reason, when);
        }
    }

    /// Makes the listener forward a notification for each queue with hops.
    pub(super) fn forward(&mut self, hops: PerQueue<Option<Hops>>) {
        if hops.map(|hops| hops.is_some()).is_any() {
            self.forward.add(hops);
            self.wake.listener = true;
        }
    }

    /// The longest time between polls: [`ProviderConfig::idle_poll_interval`](crate::ProviderConfig::idle_poll_interval) while the
    /// listener is connected, else [`ProviderConfig::poll_interval`](crate::ProviderConfig::poll_interval).
    fn poll_interval(&self) -> Duration {
        match self.others {
            Some(_) => self.limits.idle_poll_interval,
            None => self.limits.poll_interval,
        }
    }
}

/// Returns the shortest lease of the hand-offs that served a fetch, and whether any was refused.
fn hand_offs_done<A: Ask, C: Caller>(
    parked: &mut ParkedFetches<A, C>,
    done: Vec<HandOffDone<A, C>>,
    now: Instant,
) -> (Option<u64>, bool) {
    let (mut ends_in, mut is_refused) = (None::<u64>, false);
    for hand_off in done.into_iter().rev() {
        match hand_off {
            HandOffDone::Served { lock_ms } => {
                parked.on_handed_off(now);
                ends_in = Some(ends_in.map_or(lock_ms, |known| known.min(lock_ms)));
            }
            HandOffDone::Refused(fetch) => {
                is_refused = true;
                parked.on_hand_off_refused(fetch);
            }
        }
    }
    (ends_in, is_refused)
}
