//! Run-ahead commits. A worker that finished the only activity of an instance commits the outcome together with the next turn,
//! without a fetch. The turn must not overtake a message that was stored before: an enqueue changes the gate, and the commit reads
//! the gate under `If-Match`.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a message arrives from outside | `Arrive`: creates the message and changes the gate, in one batch |
//! | a timer of the instance is due | `Fire`: the gate does not change |
//! | the activity is taken by a second worker, because its lease ended | `Retake` |
//! | another process fetches the instance and commits a turn | `Fetch`, `CommitFetched` |
//! | the run-ahead commit is refused | the outcome is queued |

use super::search::{ForbiddenEvents, Protocol, never};
use stateright::{Model, Property};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// The commit does not read the gate.
    NoGate,
    /// The gate is read after the messages.
    GateReadAfterMessages,
    /// An enqueue does not change the gate.
    EnqueueKeepsGate,
    /// The commit removes the activity whatever its version.
    ActivityWithoutIfMatch,
    /// The commit replaces the instance whatever its version.
    InstanceWithoutIfMatch,
}

const OVERTAKEN: &str = "no turn overtakes a stored message";
const COMPLETED_TWICE: &str = "no activity completes twice";
const LOST_UPDATE: &str = "no turn is committed on an old state";

const MOST_ENQUEUED: u8 = 3;
const WORKERS: usize = 2;

#[derive(Clone)]
pub(super) struct RunAhead {
    bug: Option<Bug>,
}

/// The instance as the process that runs ahead knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Known {
    instance: u8,
    gate: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Activity {
    Stored {
        version: u8,
    },
    /// It completed by the queue: its completion is the message with this number.
    Completed,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Versions of the documents, which every write changes.
    instance: u8,
    gate: u8,
    activity: Activity,
    /// Stored messages that no turn took, in order: those from outside, and the completion.
    waiting: Vec<u8>,
    arrived: u8,
    has_fired: bool,
    /// The reader's gate, if it reads in two steps; then the messages and versions that it knows.
    reads: Option<(u8, Option<bool>)>,
    known: Option<Known>,
    /// The version of the activity that each worker holds.
    workers: [Option<u8>; WORKERS],
    /// A turn that another process fetched: the version of the instance, and the messages that it covers.
    fetched: Option<(u8, usize)>,
    completions: u8,
    turns: u8,
    ahead: u8,
    forbidden: ForbiddenEvents,
}

const COMPLETION: u8 = u8::MAX;
const TIMER: u8 = COMPLETION - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Arrive,
    /// A timer of the instance is due. Its message was stored long ago, so the gate does not change.
    Fire,
    /// The process reads the gate, then the messages, with the instance; it runs ahead only if there are no messages.
    ReadGate,
    ReadMessages,
    /// A worker takes the activity.
    Retake(usize),
    RunAhead(usize),
    /// A worker completes the activity by the queue.
    Queue(usize),
    Fetch,
    CommitFetched,
}

impl Model for RunAhead {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            instance: 0,
            gate: 0,
            activity: Activity::Stored { version: 0 },
            waiting: vec![],
            arrived: 0,
            has_fired: false,
            reads: None,
            known: None,
            workers: [None; WORKERS],
            fetched: None,
            completions: 0,
            turns: 0,
            ahead: 0,
            forbidden: ForbiddenEvents::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend((state.arrived < MOST_ENQUEUED).then_some(Action::Arrive));
        actions.extend((!state.has_fired).then_some(Action::Fire));
        actions.extend(state.known.is_none().then_some(Action::ReadGate));
        actions.extend(state.reads.is_some().then_some(Action::ReadMessages));
        for worker in 0..WORKERS {
            match state.workers[worker] {
                None => actions.push(Action::Retake(worker)),
                Some(_) => {
                    actions.extend(state.known.map(|_| Action::RunAhead(worker)));
                    actions.push(Action::Queue(worker));
                }
            }
        }
        let may_fetch = state.fetched.is_none() && !state.waiting.is_empty();
        actions.extend(may_fetch.then_some(Action::Fetch));
        actions.extend(state.fetched.map(|_| Action::CommitFetched));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Arrive => {
                state.waiting.push(state.arrived);
                state.arrived += 1;
                if !self.has(Bug::EnqueueKeepsGate) {
                    state.gate += 1;
                }
            }
            Action::Fire => {
                state.has_fired = true;
                state.waiting.push(TIMER);
            }
            Action::ReadGate => state.reads = Some((state.gate, Some(state.waiting.is_empty()))),
            Action::ReadMessages => {
                let (gate, was_empty) = state.reads.take()?;
                // The bug: the messages were read first, and the gate now.
                let (gate, is_empty) = match self.has(Bug::GateReadAfterMessages) {
                    true => (state.gate, was_empty == Some(true)),
                    false => (gate, state.waiting.is_empty()),
                };
                state.known = is_empty.then_some(Known { instance: state.instance, gate });
            }
            Action::Retake(worker) => {
                let Activity::Stored { version } = &mut state.activity else { return None };
                if *version >= 3 {
                    return None;
                }
                *version += 1;
                state.workers[worker] = Some(*version);
            }
            Action::RunAhead(worker) => self.run_ahead(&mut state, worker)?,
            Action::Queue(worker) => {
                let version = state.workers[worker].take()?;
                if state.activity == (Activity::Stored { version }) {
                    state.activity = Activity::Completed;
                    state.waiting.push(COMPLETION);
                    state.completions += 1;
                }
            }
            Action::Fetch => {
                state.instance += 1;
                state.fetched = Some((state.instance, state.waiting.len()));
            }
            Action::CommitFetched => {
                let (version, covered) = state.fetched.take()?;
                if version == state.instance {
                    state.waiting.drain(..covered);
                    state.instance += 1;
                    state.turns += 1;
                }
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![OVERTAKEN, LOST_UPDATE];
        properties.extend([
            Property::always(COMPLETED_TWICE, |_, state: &State| state.completions < 2),
            Property::sometimes("a turn is committed ahead", |_, state: &State| state.ahead > 0),
            Property::sometimes("the outcome is queued", |_, state: &State| {
                state.waiting.contains(&COMPLETION)
            }),
            Property::sometimes("a message arrives before the run-ahead commit", |_, state: &State| {
                state.known.is_some() && state.arrived > 0
            }),
            Property::sometimes("both workers hold the activity", |_, state: &State| {
                state.workers.iter().all(Option::is_some)
            }),
        ]);
        properties
    }
}

impl Protocol for RunAhead {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::NoGate, &[OVERTAKEN]),
        (Bug::GateReadAfterMessages, &[OVERTAKEN]),
        (Bug::EnqueueKeepsGate, &[OVERTAKEN]),
        (Bug::ActivityWithoutIfMatch, &[COMPLETED_TWICE]),
        (Bug::InstanceWithoutIfMatch, &[LOST_UPDATE]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        vec![Self { bug }]
    }

    fn is_over(&self, state: &State) -> bool {
        state.completions > 0 && state.waiting.is_empty()
    }

    fn helps(&self, _: &Action) -> bool {
        true
    }
}

impl RunAhead {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// One batch: replaces the instance, reads the gate, removes the activity, each under `If-Match`. A refused worker queues the
    /// outcome.
    fn run_ahead(&self, state: &mut State, worker: usize) -> Option<()> {
        let known = state.known.take()?;
        let version = state.workers[worker]?;
        let is_current = state.instance == known.instance;
        let is_unchanged = known.gate == state.gate || self.has(Bug::NoGate);
        let holds = match self.has(Bug::ActivityWithoutIfMatch) {
            true => state.activity != Activity::Gone,
            false => state.activity == (Activity::Stored { version }),
        };
        if !(is_unchanged && holds && (is_current || self.has(Bug::InstanceWithoutIfMatch))) {
            return Some(());
        }
        if !is_current {
            state.forbidden.insert(LOST_UPDATE);
        }
        if state.waiting.iter().any(|message| *message < TIMER) {
            state.forbidden.insert(OVERTAKEN);
        }
        state.activity = Activity::Gone;
        state.workers[worker] = None;
        state.instance += 1;
        state.completions += 1;
        state.ahead += 1;
        Some(())
    }
}
