//! The search for ready work. A writer stores a message and, at the same time, a hint for the owner of the dispatch slot. Owners
//! read hints once, from a position in the feed; a repair query finds all messages of a dispatch slot.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a message or its hint is stored first | `Store`, `Hint`: nothing orders them |
//! | the hint is lost | `LoseHint` |
//! | the dispatch slot moves to the other runtime, or the owner dies | `Move` |
//! | the owner cannot run an instance (another version of the program) | work for one runtime only |
//!
//! A hint may be stored before its message. A new owner therefore queries twice: after it took its position in the feed, and when
//! every write has ended that was in flight at that time.
//!
//! Repair runs once a minute. A property requires that work with a stored hint is known without repair; work whose hint was lost
//! is served by repair alone.

use super::search::{CAN_END, Protocol};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A new owner takes its position in the feed after its repair query.
    NowTakenAfterQuery,
    /// A new owner runs no repair query.
    NoQueryOnTakeover,
    /// A new owner does not repeat its query when the writers of its first moments have ended.
    NoSecondQuery,
    /// A hint whose message is not there yet is forgotten.
    EarlyHintForgotten,
    /// There is no periodic repair.
    NoRepair,
    /// An owner that cannot run an instance offers it to no other runtime.
    NoOffer,
}

const GAP: &str = "stored work with a later hint is known to a serving owner";
const UNKNOWN: &str = "stored work with a stored hint is known to a settled owner";

const RUNTIMES: usize = 2;
const WORK: usize = 2;
const MOVES: u8 = 2;

/// Both runtimes can run the first work, only the second one the other.
const CAN_RUN: [[bool; WORK]; RUNTIMES] = [[true, false], [true, true]];

#[derive(Clone)]
pub(super) struct Hints {
    bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Work {
    is_stored: bool,
    /// The writer has not yet sent the hint, or the hint is in flight.
    is_hint_due: bool,
    is_hint_lost: bool,
    /// The hint was stored before the message.
    is_hint_early: bool,
    is_done: bool,
    is_offered: bool,
}

/// The progress of a runtime in taking the slot over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// It does not own the slot.
    Outside,
    /// It owns the slot, and has neither position nor query.
    Begun,
    /// It has the first of the two.
    Half,
    Serves,
    /// It has queried again, after every write has ended whose hint it passed over.
    Settled,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Runtime {
    step: Step,
    /// Hints before this position are read.
    position: usize,
    /// The work that the runtime knows.
    known: BTreeSet<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    work: [Work; WORK],
    /// The hints, in the order of their storing.
    feed: Vec<usize>,
    runtimes: [Runtime; RUNTIMES],
    moves: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Store(usize),
    Hint(usize),
    LoseHint(usize),
    Move,
    /// The owner reads "now", the end of the feed.
    TakePosition,
    /// The owner queries the messages of the slot.
    Query,
    /// The owner queries them again, after the longest time that a request takes.
    QueryAgain,
    ReadHint(usize),
    Serve {
        runtime: usize,
        work: usize,
    },
    Repair,
}

impl Model for Hints {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let runtime = |step| Runtime { step, position: 0, known: BTreeSet::new() };
        let work = Work { is_hint_due: true, ..Work::default() };
        let runtimes = [runtime(Step::Settled), runtime(Step::Outside)];
        vec![State { work: [work; WORK], feed: vec![], runtimes, moves: MOVES }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (nth, work) in state.work.iter().enumerate() {
            actions.extend((!work.is_stored).then_some(Action::Store(nth)));
            if work.is_hint_due {
                actions.extend([Action::Hint(nth), Action::LoseHint(nth)]);
            }
        }
        actions.extend((state.moves > 0).then_some(Action::Move));
        for (nth, runtime) in state.runtimes.iter().enumerate() {
            let is_first_position = !self.has(Bug::NowTakenAfterQuery);
            match runtime.step {
                Step::Outside => {}
                Step::Begun if is_first_position => actions.push(Action::TakePosition),
                Step::Half if !is_first_position => actions.push(Action::TakePosition),
                Step::Begun | Step::Half => actions.push(Action::Query),
                Step::Serves | Step::Settled => {
                    actions.extend((runtime.step == Step::Serves).then_some(Action::QueryAgain));
                    actions.extend((runtime.position < state.feed.len()).then_some(Action::ReadHint(nth)));
                    actions.extend((!self.has(Bug::NoRepair)).then_some(Action::Repair));
                }
            }
            actions.extend((0..WORK).map(|work| Action::Serve { runtime: nth, work }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Store(work) => state.work[work].is_stored = true,
            Action::Hint(work) => {
                state.work[work].is_hint_due = false;
                state.work[work].is_hint_early = !state.work[work].is_stored;
                state.feed.push(work);
            }
            Action::LoseHint(work) => {
                state.work[work].is_hint_due = false;
                state.work[work].is_hint_lost = true;
            }
            Action::Move => {
                state.moves -= 1;
                let owner = state.owner();
                state.runtimes[owner] = Runtime { step: Step::Outside, position: 0, known: BTreeSet::new() };
                state.runtimes[1 - owner].step = Step::Begun;
            }
            Action::TakePosition => {
                let end = state.feed.len();
                let owner = state.owner();
                state.runtimes[owner].position = end;
                state.advance(owner);
            }
            Action::Query => {
                let owner = state.owner();
                if !self.has(Bug::NoQueryOnTakeover) {
                    state.learn_all(owner);
                }
                state.advance(owner);
            }
            Action::QueryAgain => {
                let owner = state.owner();
                let mut passed = state.feed[..state.runtimes[owner].position].iter();
                if passed.any(|work| !state.work[*work].is_stored) {
                    return None;
                }
                state.learn_all(owner);
                state.runtimes[owner].step = Step::Settled;
            }
            Action::ReadHint(nth) => {
                let work = state.feed[state.runtimes[nth].position];
                state.runtimes[nth].position += 1;
                // The owner looks for the message of an early hint again, until the writer has given up.
                if state.work[work].is_stored || !self.has(Bug::EarlyHintForgotten) {
                    state.runtimes[nth].known.insert(work);
                }
            }
            Action::Serve { runtime, work } => self.serve(&mut state, runtime, work)?,
            Action::Repair => state.learn_all(state.owner()),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(GAP, |_, state: &State| {
                let owner = &state.runtimes[state.owner()];
                let serves = matches!(owner.step, Step::Serves | Step::Settled);
                !serves || state.knows(owner, |work| !work.is_hint_early)
            }),
            Property::always(UNKNOWN, |model: &Self, state: &State| {
                let step = if model.has(Bug::NoSecondQuery) { Step::Serves } else { Step::Settled };
                let owner = &state.runtimes[state.owner()];
                owner.step != step || state.knows(owner, |_| true)
            }),
            Property::sometimes("all work is served", |model: &Self, state: &State| model.is_over(state)),
            Property::sometimes("a hint is stored before its message", |_, state: &State| {
                state.work.iter().any(|work| !work.is_stored && !work.is_hint_due && !work.is_hint_lost)
            }),
            Property::sometimes("work is stored while the slot moves", |_, state: &State| {
                state.runtimes.iter().any(|runtime| runtime.step == Step::Half) && state.work[0].is_stored
            }),
            Property::sometimes("work is offered", |_, state: &State| state.work[1].is_offered),
        ]
    }
}

impl Protocol for Hints {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::NowTakenAfterQuery, &[GAP]),
        (Bug::NoQueryOnTakeover, &[GAP]),
        (Bug::NoSecondQuery, &[UNKNOWN]),
        (Bug::EarlyHintForgotten, &[UNKNOWN]),
        (Bug::NoRepair, &[CAN_END]),
        (Bug::NoOffer, &[CAN_END]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        vec![Self { bug }]
    }

    fn is_over(&self, state: &State) -> bool {
        state.work.iter().all(|work| work.is_done)
    }

    /// No slot need move, and no hint need be lost.
    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Move | Action::LoseHint(_))
    }
}

impl Hints {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// A runtime serves work that it knows, or that is offered to all. The owner offers work that it cannot run.
    fn serve(&self, state: &mut State, runtime: usize, nth: usize) -> Option<()> {
        let work = &mut state.work[nth];
        let knows = state.runtimes[runtime].known.contains(&nth) || work.is_offered;
        if !work.is_stored || work.is_done || !knows {
            return None;
        }
        match CAN_RUN[runtime][nth] {
            true => work.is_done = true,
            false if self.has(Bug::NoOffer) => return None,
            false => work.is_offered = true,
        }
        Some(())
    }
}

impl State {
    fn owner(&self) -> usize {
        usize::from(self.runtimes[0].step == Step::Outside)
    }

    /// Whether the owner, if it has read all hints, knows the work of this kind whose message and hint are stored.
    fn knows(&self, owner: &Runtime, is_meant: impl Fn(&Work) -> bool) -> bool {
        let is_known = |(nth, work): (usize, &Work)| {
            let is_hinted = work.is_stored && !work.is_hint_due && !work.is_hint_lost;
            let needs = is_hinted && is_meant(work) && !work.is_done && !work.is_offered;
            !needs || owner.known.contains(&nth)
        };
        owner.position < self.feed.len() || self.work.iter().enumerate().all(is_known)
    }

    fn advance(&mut self, runtime: usize) {
        let step = &mut self.runtimes[runtime].step;
        *step = if *step == Step::Begun { Step::Half } else { Step::Serves };
    }

    /// The query finds all stored work of the slot.
    fn learn_all(&mut self, runtime: usize) {
        let stored = (0..WORK).filter(|nth| self.work[*nth].is_stored && !self.work[*nth].is_done);
        self.runtimes[runtime].known.extend(stored);
    }
}
