//! A parent and its child. Each may continue as new at any time, while the parent is cancelled, and messages arrive
//! late, in any order, or twice.
//!
//! The commit of a turn is one step here, which the lease model justifies. A turn fetches any part of the queue of its
//! instance, because messages may be delayed, and the code may do any of these at its end:
//!
//! | the code | then |
//! |---|---|
//! | goes on | the code may start a child, drop the child that the parent waits for, or both in one turn |
//! | returns | a child that the parent still waits for is cancelled; a child of this turn is started and cancelled |
//! | fails: an error, a limit, poison | children run on, unless the policy cancels them |
//! | continues as new | children run on, unless the policy cancels them; the new execution drops outcomes for the old execution |
//! | is cancelled | children are cancelled; a child of this turn is started and cancelled; detached starts are sent |
//!
//! Both executions of the parent start their child under the same event id and the same instance id, so the second
//! start may find the id taken. The deep model adds a child with its own id for the second execution.

mod bag;
mod state;
mod turn;

use super::search::{CAN_END, Depth, Protocol, never};
use bag::{Bag, Message};
use state::{Call, INSTANCES, Life, State};
use stateright::{Model, Property};
use turn::Turn;

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// The outcome of a child is matched by its event id alone.
    ExecutionNotMatched,
    /// A second outcome of a child is recorded (C10 of the reference).
    SecondAnswerRecorded,
    /// Children of the turn that ends are cancelled, and their starts are not sent (C2).
    NeverStartedIsCancelled,
    /// Detached starts of a turn that continues as new or is cancelled are lost (C3).
    DetachedLost,
    /// The parent receives no outcome after a limit or poison (C6, C7).
    FailureNotTold,
    /// The parent receives no outcome if the id of its child is taken.
    CollisionNotTold,
    /// A start for an instance that is poisoned between two executions is dropped, and its parent receives no outcome.
    PoisonSwallowsStarts,
    /// A running child treats a second copy of its own start as a start of a taken id.
    OwnStartCollides,
    /// A successor is stored without its parent.
    LinkLost,
    /// A cancelled parent does not cancel its child.
    ChildForgotten,
    /// A message between an execution and its successor is dropped.
    DroppedInBetween,
    /// A message before the start of its instance is dropped.
    OrphanDropped,
}

const TOLD_TWICE: &str = "no parent receives two outcomes";
const OWED: &str = "a waiting parent receives an outcome";
const OLD_ANSWER: &str = "no outcome for an old execution is recorded by a new one";
const UNASKED: &str = "no outcome comes without an open call";
const FALSE_ANSWER: &str = "no parent learns that the id of its own running child is taken";
const NEVER_STARTED: &str = "no cancellation is sent to a child that was never started";
const DETACHED: &str = "every recorded detached start is sent";
const CANCELLED: &str = "a child that was cancelled ends";

const PARENT: usize = 0;
const LAST_EXECUTION: u8 = 2;

#[derive(Clone)]
pub(super) struct Family {
    children: usize,
    /// Number of messages that are delivered twice.
    copies: u8,
    bug: Option<Bug>,
}

impl Family {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

/// The state of the code at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeEnd {
    GoesOn,
    Returns,
    Fails,
    ContinuesAsNew,
}

const ANYTHING: [CodeEnd; 4] = [CodeEnd::GoesOn, CodeEnd::Returns, CodeEnd::Fails, CodeEnd::ContinuesAsNew];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    ParentTurn(Bag, Turn),
    ChildTurn(usize, Bag, CodeEnd),
    Poke(usize),
    CancelParent,
    Copy(usize, Message),
}

impl Model for Family {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        [false, true].map(|closes_children| State::new(closes_children, self.copies)).to_vec()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (execution, may_ask) = match state.lives[PARENT] {
            Life::NotThere => (1, true),
            Life::Runs { execution, .. } => (execution, state.call == Call::None),
            Life::Continued { execution, .. } => (execution + 1, true),
            Life::Ended => (0, false),
        };
        let mut starts_child = vec![None];
        starts_child.extend(may_ask.then_some(Some(1)));
        starts_child
            .extend((may_ask && execution == LAST_EXECUTION && self.children == 2).then_some(Some(2)));
        for batch in state.batches(PARENT) {
            for starts_child in starts_child.iter().copied() {
                let turn = |code_end, drops, detaches| {
                    Action::ParentTurn(batch, Turn { code_end, starts_child, drops, detaches })
                };
                actions.extend(ANYTHING.map(|code_end| turn(code_end, false, false)));
                actions.push(turn(CodeEnd::GoesOn, true, false));
                actions.extend(ANYTHING.map(|code_end| turn(code_end, false, true)));
            }
        }
        for child in 1..=self.children {
            for batch in state.batches(child) {
                actions.extend(ANYTHING.map(|code_end| Action::ChildTurn(child, batch, code_end)));
            }
        }
        for instance in 0..=self.children {
            let runs = matches!(state.lives[instance], Life::Runs { .. });
            actions.extend(
                (runs && !state.queues[instance].has(Message::Poke)).then_some(Action::Poke(instance)),
            );
            if state.copies_left > 0 {
                actions.extend(state.queues[instance].iter().map(|message| Action::Copy(instance, message)));
            }
        }
        actions.extend((!state.cancel_asked).then_some(Action::CancelParent));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::ParentTurn(batch, turn) => self.parent_turn(&mut state, batch, turn)?,
            Action::ChildTurn(child, batch, code_end) => {
                self.child_turn(&mut state, child, batch, code_end)?
            }
            Action::Poke(instance) => state.send(instance, Message::Poke),
            Action::CancelParent => {
                state.cancel_asked = true;
                state.send(PARENT, Message::Cancel);
            }
            Action::Copy(instance, message) => {
                state.copies_left -= 1;
                state.send(instance, message);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![OLD_ANSWER, UNASKED, FALSE_ANSWER, NEVER_STARTED, DETACHED];
        properties.extend([
            Property::always(TOLD_TWICE, |_, state: &State| {
                state.outcomes.iter().all(|outcomes| *outcomes < 2)
            }),
            Property::always(OWED, |_, state: &State| match (state.lives[PARENT], state.call) {
                (Life::Runs { execution, .. }, Call::Waits(child)) => state.is_owed(child, execution),
                _ => true,
            }),
            Property::always(CANCELLED, |_, state: &State| {
                (1..INSTANCES).all(|child| {
                    !state.must_end[child]
                        || state.lives[child] == Life::Ended
                        || state.queues[child].has(Message::Cancel)
                })
            }),
            Property::sometimes("parent and children have ended", |model: &Self, state: &State| {
                model.is_over(state) && state.started[1]
            }),
            Property::sometimes(
                "an outcome arrives at the successor of the parent that waits",
                |_, state: &State| {
                    matches!(state.lives[PARENT], Life::Runs { execution: 2, .. })
                        && state.queues[PARENT].has(Message::Answer { execution: 1, taken: false })
                },
            ),
            Property::sometimes("the successor of a child answers", |_, state: &State| {
                matches!(state.lives[1], Life::Runs { execution: 2, link: Some(1) }) && state.outcomes[0] == 0
            }),
            Property::sometimes("both executions of the parent receive an outcome", |_, state: &State| {
                state.outcomes == [1, 1]
            }),
            Property::sometimes("the id of a child is taken", |_, state: &State| {
                state.queues[PARENT].has(Message::Answer { execution: 2, taken: true })
            }),
            Property::sometimes("a cancellation comes between two executions", |_, state: &State| {
                matches!(state.lives[1], Life::Continued { .. }) && state.queues[1].has(Message::Cancel)
            }),
            Property::sometimes("a child outlives its parent", |_, state: &State| {
                state.lives[PARENT] == Life::Ended && matches!(state.lives[1], Life::Runs { .. })
            }),
        ]);
        properties
    }
}

impl Protocol for Family {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::ExecutionNotMatched, &[OLD_ANSWER]),
        (Bug::SecondAnswerRecorded, &[TOLD_TWICE]),
        (Bug::NeverStartedIsCancelled, &[NEVER_STARTED, CAN_END]),
        (Bug::DetachedLost, &[DETACHED]),
        (Bug::FailureNotTold, &[OWED]),
        (Bug::CollisionNotTold, &[OWED]),
        (Bug::PoisonSwallowsStarts, &[OWED]),
        (Bug::OwnStartCollides, &[FALSE_ANSWER]),
        (Bug::LinkLost, &[OWED]),
        (Bug::ChildForgotten, &[CANCELLED]),
        (Bug::DroppedInBetween, &[CANCELLED]),
        (Bug::OrphanDropped, &[CANCELLED]),
    ];

    fn sound(depth: Depth) -> Self {
        match depth {
            Depth::Usual => Self { children: 1, copies: 1, bug: None },
            Depth::Deep => Self { children: 2, copies: 2, bug: None },
        }
    }

    fn with(bug: Bug) -> Self {
        Self { bug: Some(bug), ..Self::sound(Depth::Usual) }
    }

    fn is_over(&self, state: &State) -> bool {
        state.lives[PARENT] == Life::Ended
            && state.lives[1..].iter().all(|life| matches!(life, Life::Ended | Life::NotThere))
            && state.queues.iter().all(Bag::is_empty)
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::CancelParent | Action::Copy(..))
    }
}
