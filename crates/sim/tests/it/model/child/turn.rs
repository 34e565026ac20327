//! The commit of a turn: `opening.rs`, `conclude.rs` and `finish.rs` of the engine in short.

use super::bag::{Bag, Link, Message};
use super::state::{Call, Life, State};
use super::{Bug, CodeEnd, DETACHED, FALSE_ANSWER, Family, LAST_EXECUTION, OLD_ANSWER, PARENT, UNASKED};

/// The action of the parent's code in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) struct Turn {
    pub(super) code_end: CodeEnd,
    /// The child that the code starts.
    pub(super) starts_child: Option<usize>,
    /// Whether the code drops the child that the parent waits for, or that the code starts in this turn.
    pub(super) drops: bool,
    /// Whether the code starts a detached instance.
    pub(super) detaches: bool,
}

/// The effect of a batch of messages on its instance.
enum Admission {
    Runs {
        execution: u8,
        link: Link,
        begins: bool,
    },
    /// All messages are dropped.
    Dropped,
    /// The batch stays in the queue.
    Waits,
    /// The start of the successor did not arrive and the limit of deliveries is reached: the successor ends without
    /// having run.
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
    fn of(code_end: CodeEnd, batch: Bag) -> Option<Self> {
        match code_end {
            _ if batch.has(Message::Cancel) => Some(Self::Cancelled),
            CodeEnd::GoesOn => None,
            CodeEnd::Returns => Some(Self::Returned),
            CodeEnd::Fails => Some(Self::Failed),
            CodeEnd::ContinuesAsNew => Some(Self::Continued),
        }
    }
}

impl Family {
    /// Decides which execution the batch is for. Parents whose child could not be started receive an outcome.
    fn admit(&self, state: &mut State, instance: usize, batch: Bag, code_end: CodeEnd) -> Admission {
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
            (Life::Continued { link, .. }, ..) if code_end == CodeEnd::Fails => {
                (None, Admission::Poisoned { link })
            }
            (Life::Continued { .. }, ..) if self.has(Bug::DroppedInBetween) => (None, Admission::Dropped),
            (Life::Continued { .. }, ..) => return Admission::Waits,
            (Life::Ended, ..) => (None, Admission::Dropped),
        };
        let poisoned = matches!(admission, Admission::Poisoned { .. });
        if !(self.has(Bug::CollisionNotTold) || poisoned && self.has(Bug::PoisonSwallowsStarts)) {
            self.answer_taken_ids(state, batch, running_for);
        }
        admission
    }

    /// A second start by the same parent is no collision while the child runs.
    fn answer_taken_ids(&self, state: &mut State, batch: Bag, running_for: Option<Link>) {
        for message in batch.iter() {
            let Message::Start { link } = message else { continue };
            if running_for != Some(link) || self.has(Bug::OwnStartCollides) {
                state.answer(link, true);
            }
        }
    }

    /// Records the first outcome of an open call, and drops all others.
    fn record(&self, state: &mut State, current: u8, execution: u8, taken: bool) {
        if execution != current && !self.has(Bug::ExecutionNotMatched) {
            return;
        }
        match state.call {
            Call::Answered if !self.has(Bug::SecondAnswerRecorded) => return,
            Call::None => return state.forbidden.extend([UNASKED]),
            Call::Waits(child) if taken => {
                if let Life::Runs { link, .. } | Life::Continued { link, .. } = state.lives[child]
                    && link == Some(current)
                {
                    state.forbidden.insert(FALSE_ANSWER);
                }
            }
            Call::Waits(_) | Call::Dropped | Call::Answered => {}
        }
        if execution != current {
            state.forbidden.insert(OLD_ANSWER);
        }
        state.call = Call::Answered;
        let outcomes = &mut state.outcomes[usize::from(current - 1)];
        *outcomes = (*outcomes + 1).min(2);
    }

    pub(super) fn parent_turn(&self, state: &mut State, batch: Bag, turn: Turn) -> Option<()> {
        let does_nothing = turn.starts_child.is_none() && !turn.drops && !turn.detaches;
        state.queues[PARENT].take_all(batch);
        let execution = match self.admit(state, PARENT, batch, turn.code_end) {
            Admission::Waits => return None,
            Admission::Dropped => return (does_nothing && turn.code_end == CodeEnd::GoesOn).then_some(()),
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
        let ends = Ends::of(turn.code_end, batch);
        let possible = [
            turn.starts_child.is_none() || state.call == Call::None,
            !turn.drops || (ends.is_none() && (turn.starts_child.is_some() || waits_for.is_some())),
            // While the parent goes on, a detached start is like any other message.
            !turn.detaches || (ends.is_some() && !state.detached),
            // A cancelled turn ends in one way, independent of the code.
            ends != Some(Ends::Cancelled) || turn.code_end == CodeEnd::GoesOn,
            ends != Some(Ends::Continued) || execution < LAST_EXECUTION,
        ];
        if possible.contains(&false) {
            return None;
        }
        match ends {
            None => send_messages(state, execution, turn, waits_for),
            Some(ends) => self.end_parent(state, execution, ends, turn, waits_for),
        }
        Some(())
    }

    fn end_parent(&self, state: &mut State, execution: u8, ends: Ends, turn: Turn, waits_for: Option<usize>) {
        if turn.detaches {
            state.detached = true;
            if self.has(Bug::DetachedLost) && matches!(ends, Ends::Cancelled | Ends::Continued) {
                state.forbidden.insert(DETACHED);
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
        if let Some(child) = turn.starts_child.filter(|_| drops) {
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

    pub(super) fn child_turn(
        &self,
        state: &mut State,
        child: usize,
        batch: Bag,
        code_end: CodeEnd,
    ) -> Option<()> {
        state.queues[child].take_all(batch);
        let quiet = self.has(Bug::FailureNotTold);
        let (execution, link) = match self.admit(state, child, batch, code_end) {
            Admission::Waits => return None,
            Admission::Dropped => return (code_end == CodeEnd::GoesOn).then_some(()),
            Admission::Poisoned { link } => {
                state.lives[child] = Life::Ended;
                state.answer(link.filter(|_| !quiet), false);
                return Some(());
            }
            Admission::Runs { execution, link, .. } => (execution, link),
        };
        match Ends::of(code_end, batch) {
            Some(Ends::Cancelled) if code_end != CodeEnd::GoesOn => return None,
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

/// Sends the messages of the turn. A child that was dropped in the same turn is started and cancelled.
fn send_messages(state: &mut State, execution: u8, turn: Turn, waits_for: Option<usize>) {
    state.lives[PARENT] = Life::Runs { execution, link: None };
    match (turn.starts_child, waits_for) {
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
