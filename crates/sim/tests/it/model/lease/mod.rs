//! The lease of an instance: fetch, renew, commit, abandon, and all events between them.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a message arrives, also while a turn runs | `Send` |
//! | a worker crashes, or its process stalls for any time | `Crash`; no action is forced |
//! | a commit or an abandon succeeds and its answer is lost | `answered: false`: the worker tries again |
//! | a process is taken for dead, whether it is or not | `TakeForDead`: the lease ends for every clock |
//! | clocks differ | every call uses the clock of its caller, which differs from the true time by its `skew` |
//!
//! Times are kept as the remaining time, so the model has finitely many states without a bound on the number of events.
//! Event ids, which would also refuse most double commits, are left out: the token check must be enough.

mod store;

use super::search::{CAN_END, Depth, ForbiddenEvents, Protocol, never};
use stateright::{Model, Property};
use store::{Lease, Message, Place, State, Worker};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A commit checks its token and writes in a second step.
    CheckThenWrite,
    /// A commit checks its token but not the end of the lease.
    ExpiryIgnored,
    /// A refused commit has already deleted its messages.
    RefusedCommitDeletes,
    /// A commit deletes messages that arrived after the fetch.
    LateMessagesDeleted,
    /// A commit does not invalidate its token.
    TokenOutlivesCommit,
    /// Every lease has the same token.
    TokensRepeat,
    /// A renewal revives a lease that ended.
    RenewalRevives,
    /// A lease starts when the fetch was called, before it waited.
    LeaseStartsAtCall,
    /// A fetch leases an instance that is already leased.
    LeaseNotExclusive,
    /// A takeover does not cover the messages that the lost lease covered.
    OldCoverKept,
    /// A worker that lost its lease abandons the lease of another worker.
    StrangerGivesBack,
    /// The lease of a dead worker never ends.
    LeaseNeverEnds,
}

const TWICE: &str = "no message is recorded twice";
const LOST: &str = "no message is lost";
const ONE_HOLDER: &str = "no fetch takes a live lease";
const ENDED: &str = "no commit after the end of its lease";
const TAKEN: &str = "no commit after a takeover";
const REVIVED: &str = "no renewal after the end of its lease";
const RENEWED_TAKEN: &str = "no renewal after a takeover";
const BORN_DEAD: &str = "a lease is live when it is granted";
const DISTURBED: &str = "only its holder abandons a lease";

const MOST: usize = 3;

#[derive(Clone)]
pub(super) struct Leases {
    workers: usize,
    messages: usize,
    /// Possible skews of each clock.
    skews: [&'static [i8]; MOST],
    /// Duration of a lease and of a delay, in ticks.
    lease: i8,
    delay: i8,
    bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Tick,
    Send(usize),
    Ask(usize),
    Fetch(usize),
    Renew(usize),
    Check(usize),
    Commit { worker: usize, answered: bool },
    GiveBack { worker: usize, delayed: bool, answered: bool },
    Crash(usize),
    TakeForDead,
}

impl Model for Leases {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = Vec::new();
        for first in self.skews[0] {
            for second in self.skews[1] {
                for third in self.skews[2] {
                    states.push(State {
                        skew: [*first, *second, *third],
                        lease: None,
                        messages: [Message { place: Place::NotSent, recorded: 0 }; MOST],
                        workers: [Worker::Idle; MOST],
                        forbidden: ForbiddenEvents::new(),
                    });
                }
            }
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend([Action::Tick, Action::TakeForDead]);
        let sent = state.messages.iter().take_while(|message| message.place != Place::NotSent).count();
        actions.extend((sent < self.messages).then_some(Action::Send(sent)));
        for worker in 0..self.workers {
            match state.workers[worker] {
                Worker::Idle if self.has(Bug::LeaseStartsAtCall) => actions.push(Action::Ask(worker)),
                Worker::Idle => actions.push(Action::Fetch(worker)),
                Worker::Asking { .. } => actions.extend([Action::Fetch(worker), Action::Crash(worker)]),
                Worker::Turn { .. } => {
                    match self.has(Bug::CheckThenWrite) {
                        true => actions.push(Action::Check(worker)),
                        false => {
                            actions.extend([true, false].map(|answered| Action::Commit { worker, answered }))
                        }
                    }
                    for (delayed, answered) in [(false, true), (true, true), (true, false)] {
                        actions.push(Action::GiveBack { worker, delayed, answered });
                    }
                    actions.extend([Action::Renew(worker), Action::Crash(worker)]);
                }
                Worker::Checked { .. } => {
                    actions.extend([Action::Commit { worker, answered: true }, Action::Crash(worker)]);
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => self.tick(&mut state),
            Action::Send(nth) => {
                state.messages[nth].place = Place::Waiting { hidden: 0, covered_by: None };
            }
            Action::Ask(worker) => {
                state.workers[worker] = Worker::Asking { left: self.lease + state.skew[worker] };
            }
            Action::Fetch(worker) => self.fetch(&mut state, worker)?,
            Action::Renew(worker) => self.renew(&mut state, worker)?,
            Action::Check(worker) => match state.workers[worker] {
                Worker::Turn { batch } if self.fence(&state, worker) => {
                    state.workers[worker] = Worker::Checked { batch };
                }
                _ => return None,
            },
            Action::Commit { worker, answered } => match state.workers[worker] {
                Worker::Turn { batch } => self.commit(&mut state, worker, batch, false, answered)?,
                Worker::Checked { batch } => self.commit(&mut state, worker, batch, true, answered)?,
                _ => return None,
            },
            Action::GiveBack { worker, delayed, answered } => {
                self.give_back(&mut state, worker, delayed, answered);
            }
            Action::Crash(worker) => state.leave(worker),
            Action::TakeForDead => self.end_lease(&mut state),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![ONE_HOLDER, ENDED, TAKEN, REVIVED, RENEWED_TAKEN, BORN_DEAD, DISTURBED];
        properties.extend([
            Property::always(TWICE, |_, state: &State| state.messages.iter().all(|m| m.recorded < 2)),
            Property::always(LOST, |_, state: &State| {
                state.messages.iter().all(|m| m.place != Place::Deleted || m.recorded > 0)
            }),
            Property::sometimes("all messages are recorded", |model: &Self, state: &State| {
                model.is_over(state)
            }),
            Property::sometimes(
                "an instance is taken over from a worker that goes on",
                |_, state: &State| {
                    state.workers.iter().enumerate().any(|(nth, worker)| {
                        *worker != Worker::Idle && state.lease.is_some() && !state.is_held_by(nth)
                    })
                },
            ),
            Property::sometimes("a worker that goes on is taken for dead", |model: &Self, state: &State| {
                let turn = |worker: usize| matches!(state.workers[worker], Worker::Turn { .. });
                let is_over = |lease: Lease| lease.left == model.slowest();
                (0..model.workers).any(|worker| turn(worker) && state.is_held_by(worker))
                    && state.lease.is_some_and(is_over)
            }),
            Property::sometimes("a worker does not know that its turn is committed", |_, state: &State| {
                let recorded = |batch: u8| {
                    (0..MOST).any(|nth| batch & (1 << nth) != 0 && state.messages[nth].recorded == 1)
                };
                state
                    .workers
                    .iter()
                    .any(|worker| matches!(worker, Worker::Turn { batch } if recorded(*batch)))
            }),
            Property::sometimes("a message arrives during a turn", |_, state: &State| {
                let late = |m: &Message| matches!(m.place, Place::Waiting { covered_by: None, .. });
                state.lease.is_some() && state.messages.iter().any(late)
            }),
            Property::sometimes(
                "a lease ends for one clock and not for another",
                |model: &Self, state: &State| {
                    let judged = |lease| (0..model.workers).map(move |judge| state.is_live(lease, judge));
                    state.lease.is_some_and(|lease| {
                        judged(lease).any(|live| live) && judged(lease).any(|live| !live)
                    })
                },
            ),
        ]);
        properties
    }
}

impl Protocol for Leases {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::CheckThenWrite, &[TWICE, TAKEN, ENDED]),
        (Bug::ExpiryIgnored, &[ENDED]),
        (Bug::RefusedCommitDeletes, &[LOST]),
        (Bug::LateMessagesDeleted, &[LOST]),
        (Bug::TokenOutlivesCommit, &[TWICE]),
        (Bug::TokensRepeat, &[TWICE, TAKEN, RENEWED_TAKEN]),
        (Bug::RenewalRevives, &[REVIVED]),
        (Bug::LeaseStartsAtCall, &[BORN_DEAD]),
        (Bug::LeaseNotExclusive, &[ONE_HOLDER]),
        (Bug::OldCoverKept, &[TWICE]),
        (Bug::StrangerGivesBack, &[DISTURBED]),
        (Bug::LeaseNeverEnds, &[CAN_END]),
    ];

    fn sound(depth: Depth) -> Self {
        match depth {
            Depth::Usual => Self::usual(None),
            Depth::Deep => Self {
                messages: 3,
                skews: [&[0], &[-2, -1, 0, 1], &[-1, 0, 1, 2]],
                lease: 3,
                delay: 2,
                ..Self::usual(None)
            },
        }
    }

    fn with(bug: Bug) -> Self {
        Self::usual(Some(bug))
    }

    fn is_over(&self, state: &State) -> bool {
        state.messages[..self.messages].iter().all(|m| m.place == Place::Deleted && m.recorded > 0)
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Crash(_) | Action::TakeForDead)
    }
}

impl Leases {
    fn usual(bug: Option<Bug>) -> Self {
        Self { workers: 3, messages: 2, skews: [&[0], &[-1, 0, 1], &[-1, 0, 1]], lease: 2, delay: 1, bug }
    }
}
