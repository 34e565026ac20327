//! A parent and its child, each of which may continue as new at any time, while the parent is cancelled, answers travel,
//! and messages come late, in any order, or twice.
//!
//! The commit of a turn is one step here: the lease model shows that it is. A turn takes any part of what waits for its
//! instance, because messages may be delayed, and the code may do anything at the end of it:
//!
//! | the code | then |
//! |---|---|
//! | goes on | it may ask for a child, drop the one it has, or both in one turn |
//! | returns | a child that it still waits for is cancelled; one that it asked for in this turn is started and cancelled |
//! | fails: an error, a limit, poison | children run on, unless the policy says otherwise |
//! | continues as new | the same; answers for the old execution are dropped by the new one |
//! | is cancelled | children are cancelled; one that it asked for in this turn is started and cancelled; detached starts are sent |
//!
//! Both executions of the parent ask for their child under the same event id, and under the same instance id: the
//! second time the id may be taken. A deep look adds a child with an id of its own for the second execution.

mod bag;
mod state;
mod turn;

use super::search::{CAN_END, Depth, Protocol, never};
use bag::{Bag, Message};
use state::{Call, INSTANCES, Life, State};
use stateright::{Model, Property};
use turn::Turn;

/// The ways to get it wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// An answer is matched by its event id alone.
    ExecutionNotMatched,
    /// An answer is recorded although there is one (C10 of the reference).
    SecondAnswerRecorded,
    /// Children of the turn that ends are cancelled, and their starts are not sent (C2).
    NeverStartedIsCancelled,
    /// Detached starts of a turn that continues as new or is cancelled are lost (C3).
    DetachedLost,
    /// The parent is not told of a limit or of poison (C6, C7).
    FailureNotTold,
    /// The parent is not told that the id of its child is taken.
    CollisionNotTold,
    /// A start that comes for an instance which is poisoned between two executions is dropped, and nobody is told.
    PoisonSwallowsStarts,
    /// A child that runs answers a second copy of its own start as if the id was taken.
    OwnStartCollides,
    /// A successor does not know who waits for it.
    LinkLost,
    /// A cancelled parent forgets its child.
    ChildForgotten,
    /// What comes between an execution and its successor is dropped.
    DroppedInBetween,
    /// What comes before the start of its instance is dropped.
    OrphanDropped,
}

const TOLD_TWICE: &str = "no parent is told twice";
const OWED: &str = "whoever waits for a child will be told";
const OLD_ANSWER: &str = "no answer for an old execution is taken by a new one";
const UNASKED: &str = "no answer comes that nobody asked for";
const FALSE_ANSWER: &str = "no parent is told that its own running child is somebody else's";
const NEVER_STARTED: &str = "no cancellation goes to a child that was never started";
const DETACHED: &str = "whatever is recorded as started is started";
const CANCELLED: &str = "a child that was cancelled ends";

const PARENT: usize = 0;
const LAST_EXECUTION: u8 = 2;

#[derive(Clone)]
pub(super) struct Family {
    children: usize,
    /// How many messages are delivered twice.
    copies: u8,
    bug: Option<Bug>,
}

impl Family {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

/// How a turn ends as far as the code is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    GoesOn,
    Returns,
    Fails,
    ContinuesAsNew,
}

const ANYTHING: [Does; 4] = [Does::GoesOn, Does::Returns, Does::Fails, Does::ContinuesAsNew];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    ParentTurn(Bag, Turn),
    ChildTurn(usize, Bag, Does),
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
        let mut asks = vec![None];
        asks.extend(may_ask.then_some(Some(1)));
        asks.extend((may_ask && execution == LAST_EXECUTION && self.children == 2).then_some(Some(2)));
        for batch in state.batches(PARENT) {
            for asks in asks.iter().copied() {
                let turn =
                    |does, drops, detaches| Action::ParentTurn(batch, Turn { does, asks, drops, detaches });
                actions.extend(ANYTHING.map(|does| turn(does, false, false)));
                actions.push(turn(Does::GoesOn, true, false));
                actions.extend(ANYTHING.map(|does| turn(does, false, true)));
            }
        }
        for child in 1..=self.children {
            for batch in state.batches(child) {
                actions.extend(ANYTHING.map(|does| Action::ChildTurn(child, batch, does)));
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
            Action::ChildTurn(child, batch, does) => self.child_turn(&mut state, child, batch, does)?,
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
            Property::always(TOLD_TWICE, |_, state: &State| state.told.iter().all(|told| *told < 2)),
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
            Property::sometimes("everybody has ended", |model: &Self, state: &State| {
                model.is_over(state) && state.started[1]
            }),
            Property::sometimes("an answer comes to the successor of who asked", |_, state: &State| {
                matches!(state.lives[PARENT], Life::Runs { execution: 2, .. })
                    && state.queues[PARENT].has(Message::Answer { execution: 1, taken: false })
            }),
            Property::sometimes("the successor of a child answers", |_, state: &State| {
                matches!(state.lives[1], Life::Runs { execution: 2, link: Some(1) }) && state.told[0] == 0
            }),
            Property::sometimes("both executions of the parent are told", |_, state: &State| {
                state.told == [1, 1]
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
