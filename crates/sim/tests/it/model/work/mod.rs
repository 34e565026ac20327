//! The queue of activities: fetch, renew, complete, abandon, cancel, and sessions, which bind activities to one owner.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a turn schedules an activity, drops it in the same turn, or cancels it later | `Schedule`, `ScheduleAndDrop`, `Cancel` |
//! | a process crashes with all its workers and comes back as a new owner of sessions | `Crash` |
//! | a completion is stored and its answer is lost | `answered: false`: the worker tries again |
//! | a renewal returns a retryable error | `RenewalFails`; a correct worker tries again |
//!
//! As in the lease model, times are kept as the remaining time, and no events are counted.

mod store;

use super::search::{CAN_END, Depth, ForbiddenEvents, Protocol, never};
use stateright::{Model, Property};
use store::{Activity, Demand, Row, State, Worker};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// After a retryable error of a renewal, the worker treats the activity as cancelled and acknowledges it without a
    /// completion (C4 of the reference).
    CancelledByAnError,
    /// An activity is removed from the queue, and its completion stored in a second step.
    DeleteThenTell,
    /// A completion is accepted after the lease ended.
    ExpiryIgnored,
    /// A completion is accepted although the activity is gone.
    GoneIsFine,
    /// A renewal revives a lease that ended.
    RenewalRevives,
    /// A fetch leases an activity that is already leased.
    LeaseNotExclusive,
    /// A worker that lost its lease abandons the lease of another worker.
    StrangerGivesBack,
    /// Activities are cancelled before those of the same turn are stored.
    CancelBeforeEnqueue,
    /// A session is checked, and claimed in a second step.
    SessionClaimedLate,
    /// An activity of a session goes to any worker.
    SessionIgnored,
    /// A renewal revives a session that ended.
    SessionRevives,
    /// The session of a dead owner never ends.
    SessionNeverEnds,
}

const TWICE: &str = "no activity completes twice";
const LOST: &str = "no activity that is not cancelled is lost";
const ENDED: &str = "no completion after the end of its lease";
const TAKEN: &str = "no completion after a takeover";
const CANCELLED: &str = "no completion after a cancellation";
const UNWANTED: &str = "no fetch returns a cancelled activity";
const ONE_HOLDER: &str = "no fetch takes a live lease";
const REVIVED: &str = "no renewal after the end of its lease";
const DISTURBED: &str = "only its holder abandons a lease";
const ONE_OWNER: &str = "a live session keeps its owner";
const SESSION_REVIVED: &str = "no renewal after the end of a session";

const MOST: usize = 3;

#[derive(Clone)]
pub(super) struct Activities {
    /// The process of each worker; processes own sessions.
    owners: &'static [u8],
    activities: usize,
    /// Duration of a lease, of a session and of a delay, in ticks.
    lease: i8,
    session: i8,
    delay: i8,
    bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Tick,
    Schedule(usize),
    ScheduleAndDrop(usize),
    Cancel(usize),
    Find { worker: usize, nth: usize },
    Fetch { worker: usize, nth: usize },
    Renew(usize),
    RenewalFails(usize),
    Complete { worker: usize, answered: bool },
    AckWithoutCompletion(usize),
    Tell(usize),
    GiveBack { worker: usize, delayed: bool },
    Crash(u8),
    RenewSession(u8),
    CleanUp,
}

impl Model for Activities {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nothing = Activity { demand: Demand::NotYet, row: None, answers: 0 };
        vec![State {
            activities: [nothing; MOST],
            session: None,
            workers: [Worker::Idle; MOST],
            forbidden: ForbiddenEvents::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend([Action::Tick, Action::CleanUp]);
        for nth in 0..self.activities {
            match state.activities[nth].demand {
                Demand::NotYet => actions.extend([Action::Schedule(nth), Action::ScheduleAndDrop(nth)]),
                Demand::Wanted => actions.push(Action::Cancel(nth)),
                Demand::Cancelled => {}
            }
        }
        for (worker, owner) in self.owners.iter().enumerate() {
            if self.owners[..worker].iter().all(|other| other != owner) {
                actions.extend([Action::Crash(*owner), Action::RenewSession(*owner)]);
            }
            match state.workers[worker] {
                Worker::Idle if self.has(Bug::SessionClaimedLate) => {
                    actions.extend((0..self.activities).map(|nth| Action::Find { worker, nth }));
                }
                Worker::Idle => actions.extend((0..self.activities).map(|nth| Action::Fetch { worker, nth })),
                Worker::Found(nth) => actions.push(Action::Fetch { worker, nth }),
                Worker::Runs(_) => {
                    actions.extend([Action::Renew(worker), Action::RenewalFails(worker)]);
                    actions.extend([true, false].map(|answered| Action::Complete { worker, answered }));
                    actions.extend([true, false].map(|delayed| Action::GiveBack { worker, delayed }));
                }
                Worker::WindsDown(_) => actions.push(Action::AckWithoutCompletion(worker)),
                Worker::Removed(_) => actions.push(Action::Tell(worker)),
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let runs = |worker: usize| match last.workers[worker] {
            Worker::Idle => None,
            Worker::Runs(nth) | Worker::Found(nth) | Worker::WindsDown(nth) | Worker::Removed(nth) => {
                Some(nth)
            }
        };
        match action {
            Action::Tick => Self::tick(&mut state),
            Action::Schedule(nth) => {
                state.activities[nth] = Activity { demand: Demand::Wanted, row: Some(Row::NEW), answers: 0 };
            }
            Action::ScheduleAndDrop(nth) => {
                let row = Some(Row::NEW).filter(|_| self.has(Bug::CancelBeforeEnqueue));
                state.activities[nth] = Activity { demand: Demand::Cancelled, row, answers: 0 };
            }
            // A completed activity cannot be cancelled.
            Action::Cancel(nth) => {
                state.activities[nth].row.take()?;
                state.activities[nth].demand = Demand::Cancelled;
            }
            Action::Find { worker, nth } => {
                let free = state.activities[nth].row.is_some_and(|row| row.hidden <= 0 && !row.is_leased());
                state.workers[worker] =
                    Some(Worker::Found(nth)).filter(|_| free && self.admits(last, worker, nth))?;
            }
            Action::Fetch { worker, nth } => self.fetch(&mut state, worker, nth)?,
            Action::Renew(worker) => self.renew(&mut state, worker, runs(worker)?),
            Action::RenewalFails(worker) => {
                state.workers[worker] =
                    runs(worker).filter(|_| self.has(Bug::CancelledByAnError)).map(Worker::WindsDown)?;
            }
            Action::Complete { worker, answered } => {
                self.complete(&mut state, worker, runs(worker)?, answered)
            }
            Action::AckWithoutCompletion(worker) => {
                let nth = runs(worker)?;
                if self.removes(&mut state, worker, nth) {
                    state.activities[nth].row = None;
                }
                state.leave(worker);
            }
            Action::Tell(worker) => {
                state.answer(runs(worker)?);
                state.leave(worker);
            }
            Action::GiveBack { worker, delayed } => {
                self.give_back(&mut state, worker, runs(worker)?, delayed)
            }
            Action::Crash(owner) => self.crash(&mut state, owner),
            Action::RenewSession(owner) => self.renew_session(&mut state, owner)?,
            Action::CleanUp => {
                let wanted = (0..MOST).any(|nth| State::is_bound(nth) && state.activities[nth].row.is_some());
                state.session = state.session.filter(|session| session.left > 0 || wanted);
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![
            ENDED,
            TAKEN,
            CANCELLED,
            UNWANTED,
            ONE_HOLDER,
            REVIVED,
            DISTURBED,
            ONE_OWNER,
            SESSION_REVIVED
        ];
        properties.extend([
            Property::always(TWICE, |_, state: &State| state.activities.iter().all(|a| a.answers < 2)),
            Property::always(LOST, |_, state: &State| {
                state.activities.iter().enumerate().all(|(nth, activity)| {
                    activity.demand != Demand::Wanted
                        || activity.row.is_some()
                        || activity.answers > 0
                        || state.workers.contains(&Worker::Removed(nth))
                })
            }),
            Property::sometimes("everything is answered", |model: &Self, state: &State| {
                state.activities[..model.activities].iter().all(|a| a.answers == 1)
            }),
            Property::sometimes("an activity runs twice at the same time", |model: &Self, state: &State| {
                let running = |nth| state.workers.iter().filter(|w| **w == Worker::Runs(nth)).count();
                (0..model.activities).any(|nth| running(nth) > 1)
            }),
            Property::sometimes("a cancelled activity still runs", |_, state: &State| {
                let cancelled = |w: &Worker| {
                    matches!(w, Worker::Runs(nth) if state.activities[*nth].demand == Demand::Cancelled)
                };
                state.workers.iter().any(cancelled)
            }),
            Property::sometimes("a worker does not know that its completion is stored", |_, state: &State| {
                state.workers.iter().any(|w| matches!(w, Worker::Runs(nth) if state.activities[*nth].answers == 1))
            }),
            Property::sometimes("two owners run activities of one session", |model: &Self, state: &State| {
                let owners = state.workers.iter().zip(model.owners).filter_map(|(worker, owner)| match worker {
                    Worker::Runs(nth) if State::is_bound(*nth) => Some(*owner),
                    _ => None,
                });
                let owners: Vec<u8> = owners.collect();
                state.has_session() && owners.iter().any(|owner| *owner != owners[0])
            }),
        ]);
        properties
    }
}

impl Protocol for Activities {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::CancelledByAnError, &[LOST]),
        (Bug::DeleteThenTell, &[LOST]),
        (Bug::ExpiryIgnored, &[ENDED]),
        (Bug::GoneIsFine, &[TWICE, TAKEN, CANCELLED]),
        (Bug::RenewalRevives, &[REVIVED]),
        (Bug::LeaseNotExclusive, &[ONE_HOLDER]),
        (Bug::StrangerGivesBack, &[DISTURBED]),
        (Bug::CancelBeforeEnqueue, &[UNWANTED]),
        (Bug::SessionClaimedLate, &[ONE_OWNER]),
        (Bug::SessionIgnored, &[ONE_OWNER]),
        (Bug::SessionRevives, &[SESSION_REVIVED]),
        (Bug::SessionNeverEnds, &[CAN_END]),
    ];

    fn sound(depth: Depth) -> Self {
        match depth {
            Depth::Usual => Self { owners: &[0, 1, 1], ..Self::usual(None) },
            Depth::Deep => {
                Self { owners: &[0, 1, 1], activities: 3, lease: 4, session: 5, delay: 3, bug: None }
            }
        }
    }

    fn with(bug: Bug) -> Self {
        Self::usual(Some(bug))
    }

    fn is_over(&self, state: &State) -> bool {
        state.activities[..self.activities]
            .iter()
            .all(|a| a.row.is_none() && (a.answers == 1 || a.demand == Demand::Cancelled))
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Crash(_) | Action::Cancel(_) | Action::ScheduleAndDrop(_))
    }
}

impl Activities {
    fn usual(bug: Option<Bug>) -> Self {
        Self { owners: &[0, 1], activities: 2, lease: 2, session: 2, delay: 1, bug }
    }
}
