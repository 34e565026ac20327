//! What the commit of a turn does: the engine's `opening.rs`, `admit.rs` and `finish.rs` without their words.

use super::bag::{Bag, Link, Message};
use super::state::{Call, Life, State};
use super::{Bug, DETACHED, Does, FALSE_ANSWER, Family, LAST_EXECUTION, OLD_ANSWER, PARENT, UNASKED};

/// What the parent's code does in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) struct Turn {
    pub(super) does: Does,
    /// It asks for this child.
    pub(super) asks: Option<usize>,
    /// It drops the child that it waits for, or asks for just now.
    pub(super) drops: bool,
    /// It starts something that nobody waits for.
    pub(super) detaches: bool,
}

/// What a batch means for its instance.
enum Admission {
    Runs {
        execution: u8,
        link: Link,
        begins: bool,
    },
    /// Everything is dropped.
    Dropped,
    /// It stays in the queue.
    Waits,
    /// The start of the successor did not come, and too much else did: the successor ends without having run.
    Poisoned {
        link: Link,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Returned,
    Failed,
    Cancelled,
    Continued,
}

impl Ends {
    fn of(does: Does, batch: Bag) -> Option<Self> {
        match does {
            _ if batch.has(Message::Cancel) => Some(Self::Cancelled),
            Does::GoesOn => None,
            Does::Returns => Some(Self::Returned),
            Does::Fails => Some(Self::Failed),
            Does::ContinuesAsNew => Some(Self::Continued),
        }
    }
}

impl Family {
    /// Which execution the batch is for. Parents whose child could not be started are told.
    fn admit(&self, state: &mut State, instance: usize, batch: Bag, does: Does) -> Admission {
        let start = batch.iter().find_map(|message| match message {
            Message::Start { link } => Some(link),
            _ => None,
        });
        let successor = batch.iter().find_map(|message| match message {
            Message::Successor { link } => Some(link),
            _ => None,
        });
        let (running_for, admission) = match (state.lives[instance], start, successor) {
            (Life::NotThere, Some(link), _) => {
                (Some(link), Admission::Runs { execution: 1, link, begins: true })
            }
            (Life::NotThere, None, _) if self.has(Bug::OrphanDropped) => (None, Admission::Dropped),
            (Life::NotThere, None, _) => return Admission::Waits,
            (Life::Runs { execution, link }, ..) => {
                (Some(link), Admission::Runs { execution, link, begins: false })
            }
            (Life::Continued { execution, .. }, _, Some(link)) => {
                (Some(link), Admission::Runs { execution: execution + 1, link, begins: true })
            }
            (Life::Continued { link, .. }, ..) if does == Does::Fails => (None, Admission::Poisoned { link }),
            (Life::Continued { .. }, ..) if self.has(Bug::DroppedInBetween) => (None, Admission::Dropped),
            (Life::Continued { .. }, ..) => return Admission::Waits,
            (Life::Ended, ..) => (None, Admission::Dropped),
        };
        let poisoned = matches!(admission, Admission::Poisoned { .. });
        if !(self.has(Bug::CollisionNotTold) || poisoned && self.has(Bug::PoisonSwallowsStarts)) {
            self.tell_taken(state, batch, running_for);
        }
        admission
    }

    /// The same parent asking twice for a running child is no collision.
    fn tell_taken(&self, state: &mut State, batch: Bag, running_for: Option<Link>) {
        for message in batch.iter() {
            let Message::Start { link } = message else { continue };
            if running_for != Some(link) || self.has(Bug::OwnStartCollides) {
                state.answer(link, true);
            }
        }
    }

    /// The first answer to an open call wins, and everything else is dropped.
    fn record(&self, state: &mut State, current: u8, execution: u8, taken: bool) {
        if execution != current && !self.has(Bug::ExecutionNotMatched) {
            return;
        }
        match state.call {
            Call::Answered if !self.has(Bug::SecondAnswerRecorded) => return,
            Call::None => return state.wrong.extend([UNASKED]),
            Call::Waits(child) if taken => {
                if let Life::Runs { link, .. } | Life::Continued { link, .. } = state.lives[child]
                    && link == Some(current)
                {
                    state.wrong.insert(FALSE_ANSWER);
                }
            }
            Call::Waits(_) | Call::Dropped | Call::Answered => {}
        }
        if execution != current {
            state.wrong.insert(OLD_ANSWER);
        }
        state.call = Call::Answered;
        let told = &mut state.told[usize::from(current - 1)];
        *told = (*told + 1).min(2);
    }

    pub(super) fn parent_turn(&self, state: &mut State, batch: Bag, turn: Turn) -> Option<()> {
        let does_nothing = turn.asks.is_none() && !turn.drops && !turn.detaches;
        state.queues[PARENT].take_all(batch);
        let execution = match self.admit(state, PARENT, batch, turn.does) {
            Admission::Waits => return None,
            Admission::Dropped => return (does_nothing && turn.does == Does::GoesOn).then_some(()),
            Admission::Poisoned { .. } => {
                state.lives[PARENT] = Life::Ended;
                state.call = Call::None;
                return does_nothing.then_some(());
            }
            Admission::Runs { execution, begins, .. } => {
                state.call = if begins { Call::None } else { state.call };
                execution
            }
        };
        for message in batch.iter() {
            if let Message::Answer { execution: of, taken } = message {
                self.record(state, execution, of, taken);
            }
        }
        let waits_for = match state.call {
            Call::Waits(child) => Some(child),
            _ => None,
        };
        let ends = Ends::of(turn.does, batch);
        let possible = [
            turn.asks.is_none() || state.call == Call::None,
            !turn.drops || (ends.is_none() && (turn.asks.is_some() || waits_for.is_some())),
            // While the parent goes on, a detached start is like any other message.
            !turn.detaches || (ends.is_some() && !state.detached),
            // A cancelled turn ends in one way, whatever the code did.
            ends != Some(Ends::Cancelled) || turn.does == Does::GoesOn,
            ends != Some(Ends::Continued) || execution < LAST_EXECUTION,
        ];
        if possible.contains(&false) {
            return None;
        }
        match ends {
            None => go_on(state, execution, turn, waits_for),
            Some(ends) => self.end_parent(state, execution, ends, turn, waits_for),
        }
        Some(())
    }

    fn end_parent(&self, state: &mut State, execution: u8, ends: Ends, turn: Turn, waits_for: Option<usize>) {
        if turn.detaches {
            state.detached = true;
            if self.has(Bug::DetachedLost) && matches!(ends, Ends::Cancelled | Ends::Continued) {
                state.wrong.insert(DETACHED);
            }
        }
        let cancels = matches!(ends, Ends::Cancelled | Ends::Returned) || state.closes_children;
        if let Some(child) = waits_for.filter(|_| cancels) {
            state.must_end[child] = true;
            if !(ends == Ends::Cancelled && self.has(Bug::ChildForgotten)) {
                state.cancel(child);
            }
        }
        let drops = matches!(ends, Ends::Cancelled | Ends::Returned);
        if let Some(child) = turn.asks.filter(|_| drops) {
            if !self.has(Bug::NeverStartedIsCancelled) {
                state.send(child, Message::Start { link: Some(execution) });
            }
            state.must_end[child] = true;
            state.cancel(child);
        }
        state.call = Call::None;
        state.lives[PARENT] = Life::Ended;
        if ends == Ends::Continued {
            state.lives[PARENT] = Life::Continued { execution, link: None };
            state.send(PARENT, Message::Successor { link: None });
        }
    }

    pub(super) fn child_turn(&self, state: &mut State, child: usize, batch: Bag, does: Does) -> Option<()> {
        state.queues[child].take_all(batch);
        let quiet = self.has(Bug::FailureNotTold);
        let (execution, link) = match self.admit(state, child, batch, does) {
            Admission::Waits => return None,
            Admission::Dropped => return (does == Does::GoesOn).then_some(()),
            Admission::Poisoned { link } => {
                state.lives[child] = Life::Ended;
                state.answer(link.filter(|_| !quiet), false);
                return Some(());
            }
            Admission::Runs { execution, link, .. } => (execution, link),
        };
        match Ends::of(does, batch) {
            Some(Ends::Cancelled) if does != Does::GoesOn => return None,
            Some(Ends::Continued) if execution == LAST_EXECUTION => return None,
            None => state.lives[child] = Life::Runs { execution, link },
            Some(Ends::Continued) => {
                state.lives[child] = Life::Continued { execution, link };
                state.send(child, Message::Successor { link: link.filter(|_| !self.has(Bug::LinkLost)) });
            }
            Some(ends) => {
                state.lives[child] = Life::Ended;
                state.answer(link.filter(|_| !(quiet && ends == Ends::Failed)), false);
            }
        }
        Some(())
    }
}

/// Everything that the code asked for is sent. A child that it dropped again is started and cancelled.
fn go_on(state: &mut State, execution: u8, turn: Turn, waits_for: Option<usize>) {
    state.lives[PARENT] = Life::Runs { execution, link: None };
    match (turn.asks, waits_for) {
        (Some(child), _) if turn.drops => {
            state.call = Call::Dropped;
            state.send(child, Message::Start { link: Some(execution) });
            state.must_end[child] = true;
            state.cancel(child);
        }
        (Some(child), _) => {
            state.call = Call::Waits(child);
            state.send(child, Message::Start { link: Some(execution) });
        }
        (None, Some(child)) if turn.drops => {
            state.call = Call::Dropped;
            state.must_end[child] = true;
            state.cancel(child);
        }
        _ => {}
    }
}
