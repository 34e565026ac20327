//! The commit of turns: lock, plain commit, staged commit, renewal, takeover, sweep, drop.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a worker takes the lease over, whatever its clock says | `Take` |
//! | a worker stalls for any time | no action is forced |
//! | a worker crashes; its requests may still arrive | `Crash` |
//! | the answer to a request is lost, before or after its execution | `TimeOut`: the request stays in flight, and may arrive after any other event |
//! | the SDK repeats a request that may have been applied | `Repeat` |
//! | a message arrives during a turn | `Arrive` |
//!
//! The state counts the events that could repeat without end (leases, time-outs, renewals), so the model has finitely many states.

mod service;
mod worker;

use super::search::{ForbiddenEvents, Protocol, never};
use service::{Id, Request, Service};
use stateright::{Model, Property};
use std::collections::BTreeSet;
use worker::{Sent, Step, Worker};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A commit replaces the instance without `If-Match`.
    CommitWithoutIfMatch,
    /// A takeover replaces the instance without `If-Match`.
    LockWithoutIfMatch,
    /// A staged batch does not read the instance under `If-Match`.
    StageWithoutGuard,
    /// A takeover does not count the rev of the staged turn that it gives up.
    RevReused,
    /// A takeover forgets the dead rev before its documents are removed.
    DeadClearedBeforeSweep,
    /// The sweep removes documents by their ids alone.
    SweepWithoutGuard,
    /// A write of the instance forgets the dropped documents before they are removed.
    DroppedClearedBeforeRemoval,
    /// A turn is handed out before the documents of the last attempt are removed.
    HandedOutBeforeSweep,
    /// 409 and 412 are classified as a refusal, also after more than one attempt.
    ConflictIsFailure,
    /// A renewal is sent while the service has staged batches to execute.
    RenewalDuringStage,
}

const ATOMIC: &str = "a reader sees the documents of committed turns and no others";
const TWICE: &str = "no message is recorded twice";
const LOST: &str = "no message is lost";
const REV_REUSED: &str = "no rev is used by two attempts";
const LATE: &str = "no staged document is created after a takeover";
const COLLISION: &str = "no document of an attempt collides with one of another attempt";
const MISREPORTED: &str = "no applied commit is reported as lost";
const SELF_INFLICTED: &str = "no worker loses its lease to a write of its own";

const WORKERS: usize = 2;
const MESSAGES: u8 = 2;
/// The parts of the history of a turn, which are staged in parallel.
const PARTS: u8 = 2;

#[derive(Clone)]
pub(super) struct Commits {
    /// Messages; leases, time-outs and renewals that may happen.
    messages: u8,
    leases: u8,
    mishaps: u8,
    renewals: u8,
    bug: Option<Bug>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    service: Service,
    workers: [Worker; WORKERS],
    /// Requests in flight whose senders wait no more.
    strays: Vec<Request>,
    /// Leases, time-outs and renewals that may still happen.
    leases: u8,
    mishaps: u8,
    renewals: u8,
    forbidden: ForbiddenEvents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A message arrives.
    Arrive(u8),
    /// A worker reads the instance and sends the write that locks it.
    Take(usize),
    /// A worker searches for documents that must be removed, and sends their removal, or continues if there are none.
    Clean(usize),
    /// A worker sends the commit of its turn, or reserves a rev for it.
    Commit {
        worker: usize,
        is_staged: bool,
    },
    /// A worker whose documents are staged sends the flip.
    Flip(usize),
    Renew(usize),
    /// The service executes a request, and the worker gets the answer.
    Execute {
        worker: usize,
        nth: usize,
    },
    /// The worker stops waiting for an answer.
    TimeOut {
        worker: usize,
        nth: usize,
    },
    /// The SDK sends a request again.
    Repeat {
        worker: usize,
        nth: usize,
    },
    /// The worker reads to resolve a doubt.
    Resolve {
        worker: usize,
        nth: usize,
    },
    /// The service executes a request that its sender waits for no more.
    ExecuteStray(usize),
    Crash(usize),
}

impl Model for Commits {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            service: Service::with_message(0),
            workers: [Worker::default(), Worker::default()],
            strays: vec![],
            leases: self.leases,
            mishaps: self.mishaps,
            renewals: self.renewals,
            forbidden: ForbiddenEvents::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let arrived = state.service.arrived;
        actions.extend((arrived < self.messages).then_some(Action::Arrive(arrived)));
        actions.extend((0..state.strays.len()).map(Action::ExecuteStray));
        for (worker, own) in state.workers.iter().enumerate() {
            let is_free = own.sent.is_empty();
            match own.step {
                Step::Idle if state.leases > 0 => actions.push(Action::Take(worker)),
                Step::Clean | Step::Removing if is_free => actions.push(Action::Clean(worker)),
                Step::Staging if is_free => actions.push(Action::Flip(worker)),
                Step::Turn if is_free => {
                    actions.extend([true, false].map(|is_staged| Action::Commit { worker, is_staged }));
                }
                _ => {}
            }
            let may_renew = is_free || (self.has(Bug::RenewalDuringStage) && own.step == Step::Staging);
            if matches!(own.step, Step::Clean | Step::Turn | Step::Staging) && may_renew && state.renewals > 0
            {
                actions.push(Action::Renew(worker));
            }
            for (nth, sent) in own.sent.iter().enumerate() {
                match sent.is_in_doubt {
                    true => actions.extend([Action::Repeat { worker, nth }, Action::Resolve { worker, nth }]),
                    false => {
                        actions.push(Action::Execute { worker, nth });
                        actions.extend((state.mishaps > 0).then_some(Action::TimeOut { worker, nth }));
                    }
                }
            }
            if own.step != Step::Idle && state.mishaps > 0 {
                actions.push(Action::Crash(worker));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Arrive(message) => state.service.arrive(message),
            Action::Take(worker) => {
                state.leases -= 1;
                self.take(&mut state, worker)?;
            }
            Action::Clean(worker) => self.clean(&mut state, worker),
            Action::Commit { worker, is_staged } => self.commit(&mut state, worker, is_staged)?,
            Action::Flip(worker) => self.flip(&mut state, worker),
            Action::Renew(worker) => {
                state.renewals -= 1;
                self.renew(&mut state, worker);
            }
            Action::Execute { worker, nth } => self.execute(&mut state, worker, nth),
            Action::TimeOut { worker, nth } => {
                state.mishaps -= 1;
                let sent = &mut state.workers[worker].sent[nth];
                sent.is_in_doubt = true;
                state.strays.push(sent.request.clone());
            }
            Action::Repeat { worker, nth } => {
                let sent = &mut state.workers[worker].sent[nth];
                // A second doubt is resolved by reading.
                if sent.attempts > 1 {
                    return None;
                }
                *sent = Sent { attempts: sent.attempts + 1, is_in_doubt: false, ..sent.clone() };
            }
            Action::Resolve { worker, nth } => self.resolve(&mut state, worker, nth),
            Action::ExecuteStray(nth) => {
                let request = state.strays.remove(nth);
                let status = state.run(&request);
                self.judge(&mut state, &request, status, false);
            }
            Action::Crash(worker) => {
                state.mishaps -= 1;
                let own = std::mem::take(&mut state.workers[worker]);
                let waiting = own.sent.into_iter().filter(|sent| !sent.is_in_doubt);
                state.strays.extend(waiting.map(|sent| sent.request));
            }
        }
        state.normalise();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![REV_REUSED, LATE, COLLISION, MISREPORTED, SELF_INFLICTED];
        properties.extend([
            Property::always(ATOMIC, |_, state: &State| state.service.is_atomic()),
            Property::always(TWICE, |_, state: &State| state.service.recorded.iter().all(|count| *count < 2)),
            Property::always(LOST, |_, state: &State| {
                let is_kept = |message: u8| {
                    state.service.recorded[usize::from(message)] > 0
                        || state.service.is_visible(Id::Message(message))
                };
                (0..state.service.arrived).all(is_kept)
            }),
            Property::sometimes("all messages are recorded", |_, state: &State| state.is_done()),
            Property::sometimes("a staged turn is given up", |_, state: &State| {
                !state.service.instance.marks.dead.is_empty()
            }),
            Property::sometimes(
                "a staged turn is committed after another was given up",
                |_, state: &State| {
                    state.service.committed.iter().any(|commit| commit.is_staged && commit.rev > 1)
                },
            ),
            Property::sometimes("a stray request commits", |_, state: &State| {
                state.service.instance.turn == 1
                    && state
                        .workers
                        .iter()
                        .any(|own| own.sent.iter().any(|sent| sent.is_in_doubt && sent.request.commits()))
            }),
            Property::sometimes("a takeover removes dropped documents", |_, state: &State| {
                let removes = |own: &Worker| own.step == Step::Clean && !own.sent.is_empty();
                !state.service.instance.marks.dropped.is_empty() && state.workers.iter().any(removes)
            }),
            Property::sometimes("two workers believe that they hold the lease", |_, state: &State| {
                state.workers.iter().all(|own| own.step == Step::Turn)
            }),
        ]);
        properties
    }
}

impl Protocol for Commits {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::CommitWithoutIfMatch, &[TWICE]),
        (Bug::LockWithoutIfMatch, &[TWICE]),
        (Bug::StageWithoutGuard, &[LATE, ATOMIC]),
        (Bug::RevReused, &[REV_REUSED]),
        (Bug::DeadClearedBeforeSweep, &[ATOMIC]),
        (Bug::SweepWithoutGuard, &[ATOMIC]),
        (Bug::DroppedClearedBeforeRemoval, &[TWICE]),
        (Bug::HandedOutBeforeSweep, &[COLLISION]),
        (Bug::ConflictIsFailure, &[MISREPORTED]),
        (Bug::RenewalDuringStage, &[SELF_INFLICTED]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        let model = |messages, leases, mishaps, renewals| Self { messages, leases, mishaps, renewals, bug };
        vec![
            model(1, 3, 0, 0),
            model(1, 2, 1, 1),
            model(2, 2, 1, 0),
            model(1, 2, 2, 0),
            model(1, 3, 1, 0),
            model(2, 3, 0, 1),
        ]
    }

    /// Without further leases no event follows.
    fn is_over(&self, state: &State) -> bool {
        (state.is_done() && state.service.arrived == self.messages) || state.leases == 0
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Crash(_) | Action::TimeOut { .. })
    }
}

impl Commits {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }
}

impl State {
    fn is_done(&self) -> bool {
        self.service.recorded.iter().take(usize::from(self.service.arrived)).all(|count| *count > 0)
    }

    /// A write id that no request has. Workers have ids of their own, so that the order of their requests makes no difference.
    fn next_write(&self, worker: usize) -> u8 {
        let used = self.used_writes();
        (1..=u8::MAX)
            .find(|write| usize::from(*write) % WORKERS == worker && !used.contains(write))
            .unwrap_or(0)
    }

    fn used_writes(&self) -> BTreeSet<u8> {
        let waiting = self.workers.iter().flat_map(|own| &own.sent).map(|sent| sent.request.write);
        let tokens = self.workers.iter().filter_map(|own| own.token);
        waiting.chain(self.strays.iter().map(|request| request.write)).chain(tokens).collect()
    }

    /// Executes a request in the service. Workers that have read an earlier version of a replaced instance are out of date.
    fn run(&mut self, request: &Request) -> u16 {
        let status = self.service.execute(request, &mut self.forbidden);
        if status == 200 && request.replaces.is_some() {
            self.workers.iter_mut().for_each(|own| own.is_current = false);
            let waiting = self.workers.iter_mut().flat_map(|own| &mut own.sent).map(|sent| &mut sent.request);
            let conditions = waiting.chain(&mut self.strays).map(|request| &mut request.is_current);
            conditions.flatten().for_each(|is_current| *is_current = false);
        }
        status
    }

    /// Makes states equal that differ in no relevant way.
    fn normalise(&mut self) {
        // These requests are refused whenever they arrive.
        self.strays.retain(|request| request.is_current != Some(false));
        self.strays.sort();
        let used = self.used_writes();
        self.service.normalise(&used);
        self.workers.iter_mut().for_each(|own| own.instance.normalise(&used));
        let waiting = self.workers.iter_mut().flat_map(|own| &mut own.sent).map(|sent| &mut sent.request);
        let contents = waiting.chain(&mut self.strays).filter_map(|request| request.replaces.as_mut());
        contents.for_each(|instance| instance.normalise(&used));
    }
}
