//! Parked fetches of several processes on one queue, in every order of their polls, commits, failures and notifications.
//!
//! Processes run the transitions of [`Parked`] and [`Forward`] that ship. The model adds the server: the items that are fetchable,
//! the registrations, and the notifications on their way. Time does not pass, so no poll that is scheduled for later helps: a
//! fetch gets its item because a poll is due, or not at all.
//!
//! | step | is |
//! |---|---|
//! | `Fetch`, `Leave` | a caller fetches; the caller of a parked fetch goes away |
//! | `Send`, `Execute`, `Finish` | a transaction leaves its process; the server commits it; its process reads the answer |
//! | `Fail` | a transaction is undone by the server |
//! | `Notified`, `Forward` | a notification arrives; the listener forwards one |
//! | `Register`, `Hear`, `AllHeard`, `Unregister` | registrations, and when the other processes know of them |

use super::{Caller, Fetch, GroupDone, Parked, Reason, When};
use crate::ask::Ask;
use crate::notify::{Forward, Hops};
use crate::queue::PerQueue;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::{BTreeSet, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::time::Instant;

static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
const PERIODIC: Duration = Duration::from_secs(600);

/// Kinds of items, such as tags of activities. A fetch asks for one kind.
const KINDS: usize = 2;
type Kind = usize;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KindAsk(Kind);

impl Ask for KindAsk {
    fn is_like(&self, other: &Self) -> bool {
        self == other
    }

    fn wants(&self) -> usize {
        1
    }

    fn lock_ms(&self) -> u64 {
        1
    }

    fn fails_with(&self, other: &Self, _no_sessions: bool) -> bool {
        self == other
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ModelCaller {
    is_gone: bool,
}

impl Caller for ModelCaller {
    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

type ModelFetch = Fetch<KindAsk, ModelCaller>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    /// The fetches that are polled for, in groups.
    groups: Vec<Vec<ModelFetch>>,
    changes: u64,
    brings: Option<Kind>,
    /// The fetch that the brought item is handed to.
    hand_off: Option<ModelFetch>,
    notifies: bool,
    answer: Option<Answer>,
}

impl Sent {
    fn frees(&self) -> bool {
        self.brings.is_some() && self.hand_off.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Answer {
    /// For each group, the number of fetches that are served.
    served: Vec<usize>,
    is_handed_off: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Process {
    parked: Parked<KindAsk, ModelCaller>,
    sent: Vec<Sent>,
    forward: Forward,
    /// The kinds that the process is registered for; empty: not registered.
    registered: BTreeSet<Kind>,
    /// The processes that have not heard of the last registration.
    unheard: BTreeSet<usize>,
    /// The poll that follows when all processes have heard of a registration.
    polls_when_heard: bool,
    /// The processes that this one knows to be registered.
    known: BTreeSet<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    processes: Vec<Process>,
    /// The number of fetchable items of each kind.
    items: [u8; KINDS],
    /// Notifications on their way: receiver and hops.
    notifications: BTreeSet<(usize, Hops)>,
    /// What may still happen.
    commits: u8,
    fetches: u8,
    mishaps: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fetch { process: usize, kind: Kind },
    Leave { process: usize, fetch: usize },
    Send { process: usize, brings: Option<Kind> },
    Execute { process: usize, sent: usize, is_handed_off: bool, notified: Option<usize> },
    Fail { process: usize, sent: usize },
    Finish { process: usize, sent: usize },
    Notified { process: usize, hops: Hops },
    Forward { process: usize, to: Option<usize> },
    Register(usize),
    Hear { process: usize, other: usize },
    AllHeard(usize),
    Unregister(usize),
}

/// Known ways to lose a wake-up. Each must break [`NO_LOST_WAKE_UP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A process does not poll after it has registered.
    NoPollAfterRegistering,
    /// A process does not poll when all have heard of its registration.
    NoPollWhenHeard,
    /// A process that registers for more kinds does not poll.
    NoPollForMoreKinds,
    /// A commit of the process itself does not make a poll due.
    LocalCommitIgnored,
    /// A finished poll takes the change of another transaction for one that it has seen.
    ChangeMissed,
    /// A served process keeps its notification.
    NotForwardedWhenServed,
    /// A process that may not have the item keeps its notification.
    NotForwardedWhenEmpty,
    /// A notification whose fetch went away is not forwarded.
    GoneFetchKeepsNotification,
    /// Fetches of a failed transaction wait for the next change.
    NoPollAfterFailure,
}

const BUGS: [Bug; 9] = [
    Bug::NoPollAfterRegistering,
    Bug::NoPollWhenHeard,
    Bug::NoPollForMoreKinds,
    Bug::LocalCommitIgnored,
    Bug::ChangeMissed,
    Bug::NotForwardedWhenServed,
    Bug::NotForwardedWhenEmpty,
    Bug::GoneFetchKeepsNotification,
    Bug::NoPollAfterFailure,
];

const NO_LOST_WAKE_UP: &str = "no wake-up is lost";

#[derive(Clone)]
struct Processes {
    count: usize,
    commits: u8,
    fetches: u8,
    mishaps: u8,
    bug: Option<Bug>,
}

impl Model for Processes {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            processes: vec![Process::default(); self.count],
            items: [0; KINDS],
            notifications: BTreeSet::new(),
            commits: self.commits,
            fetches: self.fetches,
            mishaps: self.mishaps,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (process, own) in state.processes.iter().enumerate() {
            for kind in 0..KINDS {
                if state.fetches > 0 {
                    steps.push(Step::Fetch { process, kind });
                }
                if state.commits > 0 && own.sent.len() < 2 {
                    steps.push(Step::Send { process, brings: Some(kind) });
                }
            }
            if own.sent.len() < 2 {
                steps.push(Step::Send { process, brings: None });
            }
            if state.mishaps > 0 {
                steps.extend((0..own.parked.fetches.len()).map(|fetch| Step::Leave { process, fetch }));
            }
            for (sent, transaction) in own.sent.iter().enumerate() {
                if transaction.answer.is_some() {
                    steps.push(Step::Finish { process, sent });
                    continue;
                }
                if state.mishaps > 0 {
                    steps.push(Step::Fail { process, sent });
                }
                let handed_off: &[bool] =
                    if transaction.hand_off.is_some() { &[true, false] } else { &[false] };
                for is_handed_off in handed_off.iter().copied() {
                    for notified in self.receivers(state, process, transaction.notifies) {
                        steps.push(Step::Execute { process, sent, is_handed_off, notified });
                    }
                }
            }
            if own.forward.queues.turns {
                let eligible = |to: &usize| {
                    *to != process
                        && state.processes[*to].registered.iter().any(|kind| state.items[*kind] > 0)
                };
                let eligible: Vec<_> = (0..self.count).filter(eligible).map(Some).collect();
                let to = if eligible.is_empty() { vec![None] } else { eligible };
                steps.extend(to.into_iter().map(|to| Step::Forward { process, to }));
            }
            steps.extend([Step::Register(process), Step::AllHeard(process), Step::Unregister(process)]);
            steps.extend((0..self.count).map(|other| Step::Hear { process, other }));
        }
        steps.extend(
            state
                .notifications
                .iter()
                .map(|(process, hops)| Step::Notified { process: *process, hops: *hops }),
        );
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Fetch { process, kind } => {
                state.fetches -= 1;
                let caller = ModelCaller { is_gone: false };
                state.processes[process].parked.on_fetch(Fetch {
                    ask: KindAsk(kind),
                    parks: true,
                    is_new: true,
                    caller,
                });
            }
            Step::Leave { process, fetch } => {
                state.mishaps -= 1;
                state.processes[process].parked.fetches[fetch].caller.is_gone = true;
            }
            Step::Send { process, brings } => {
                state.commits -= u8::from(brings.is_some());
                self.send(&mut state.processes[process], brings)?;
            }
            Step::Execute { process, sent, is_handed_off, notified } => {
                let transaction = &mut state.processes[process].sent[sent];
                execute(transaction, &mut state.items, is_handed_off);
                state.notifications.extend(notified.map(|to| (to, 0)));
            }
            Step::Fail { process, sent } => {
                state.mishaps -= 1;
                self.fail(&mut state.processes[process], sent);
            }
            Step::Finish { process, sent } => self.finish(&mut state.processes[process], sent),
            Step::Notified { process, hops } => {
                state.notifications.remove(&(process, hops));
                let own = &mut state.processes[process];
                let unusable = own.parked.on_notification(hops);
                forward(own, unusable);
            }
            Step::Forward { process, to } => {
                let own = std::mem::take(&mut state.processes[process].forward);
                state.notifications.extend(to.map(|to| (to, own.hops)));
            }
            Step::Register(process) => self.register(&mut state, process)?,
            Step::Hear { process, other } => {
                let is_registered = !state.processes[other].registered.is_empty();
                if !state.processes[other].unheard.remove(&process) {
                    return None;
                }
                let known = &mut state.processes[process].known;
                let _ = if is_registered { known.insert(other) } else { known.remove(&other) };
            }
            Step::AllHeard(process) => {
                let own = &mut state.processes[process];
                if !own.unheard.is_empty() || !std::mem::take(&mut own.polls_when_heard) {
                    return None;
                }
                if self.bug != Some(Bug::NoPollWhenHeard) {
                    own.parked.schedule_poll(Reason::RemoteChange, When::Now);
                }
            }
            Step::Unregister(process) => {
                let own = &mut state.processes[process];
                if own.registered.is_empty() || !own.parked.fetches.is_empty() || !own.unheard.is_empty() {
                    return None;
                }
                own.registered.clear();
                own.polls_when_heard = false;
                own.unheard = (0..self.count).filter(|other| *other != process).collect();
            }
        }
        state.processes.iter_mut().for_each(normalise);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LOST_WAKE_UP, |_, state: &State| !state.has_lost_wake_up()),
            Property::sometimes("a poll serves a fetch", |_, state: &State| {
                state.answers().any(|answer| answer.served.iter().sum::<usize>() > 0)
            }),
            Property::sometimes("a hand-off serves a fetch", |_, state: &State| {
                state.answers().any(|answer| answer.is_handed_off)
            }),
            Property::sometimes("a notification is forwarded twice", |_, state: &State| {
                state.notifications.iter().any(|(_, hops)| *hops >= 2)
            }),
            Property::sometimes("a change comes while a poll runs", |_, state: &State| {
                let missed = |process: &Process| {
                    process
                        .sent
                        .iter()
                        .any(|sent| !sent.groups.is_empty() && sent.changes != process.parked.changes)
                };
                state.processes.iter().any(missed)
            }),
            Property::sometimes("everything is quiet while a fetch is parked", |_, state: &State| {
                !state.is_busy() && state.processes.iter().any(|process| !process.parked.fetches.is_empty())
            }),
        ]
    }
}

/// Counts of changes only matter as far as they differ.
fn normalise(process: &mut Process) {
    let counts = process.sent.iter().map(|sent| sent.changes).chain([process.parked.changes]);
    let least = counts.min().unwrap_or(0);
    process.parked.changes -= least;
    process.sent.iter_mut().for_each(|sent| sent.changes -= least);
}

fn forward(process: &mut Process, hops: Option<Hops>) {
    process.forward.add(PerQueue { turns: hops, activities: None });
}

/// The server commits a transaction: it stores the item, and leases items to the fetches.
fn execute(transaction: &mut Sent, items: &mut [u8; KINDS], is_handed_off: bool) {
    if let Some(kind) = transaction.brings.filter(|_| !is_handed_off) {
        items[kind] += 1;
    }
    let lease = |group: &Vec<ModelFetch>| {
        let free = &mut items[group[0].ask.0];
        let served = group.len().min(usize::from(*free));
        *free -= u8::try_from(served).unwrap();
        served
    };
    let served = transaction.groups.iter().map(lease).collect();
    transaction.answer = Some(Answer { served, is_handed_off });
}

impl Processes {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// The processes that the server may notify of a commit.
    fn receivers(&self, state: &State, sender: usize, notifies: bool) -> Vec<Option<usize>> {
        let registered = |to: &usize| *to != sender && !state.processes[*to].registered.is_empty();
        let receivers: Vec<_> = (0..self.count).filter(registered).map(Some).collect();
        if notifies && !receivers.is_empty() { receivers } else { vec![None] }
    }

    /// As `Scheduler::next_transaction`.
    fn send(&self, process: &mut Process, brings: Option<Kind>) -> Option<()> {
        const MOST: usize = 2;
        let hand_off = brings.filter(|_| process.parked.takes_hand_offs());
        let hand_off = hand_off.and_then(|kind| process.parked.take_tried(|ask| ask.0 == kind));
        let frees = brings.is_some() && hand_off.is_none();
        let poll = process.parked.start_poll(frees, MOST);
        if !self.has(Bug::GoneFetchKeepsNotification) {
            let unusable = process.parked.unusable_notification();
            forward(process, unusable);
        }
        if brings.is_none() && poll.is_empty() {
            // Nothing is sent, but fetches whose callers have gone are dropped.
            return Some(());
        }
        process.sent.push(Sent {
            changes: poll.changes,
            groups: poll.groups,
            brings,
            hand_off,
            notifies: frees && !process.known.is_empty(),
            answer: None,
        });
        Some(())
    }

    /// As `Scheduler::on_lane_done`.
    fn finish(&self, process: &mut Process, sent: usize) {
        let mut sent = process.sent.remove(sent);
        let frees = sent.frees();
        let Some(answer) = sent.answer.take() else { return };
        if !sent.groups.is_empty() {
            process.parked.on_poll_ended();
        }
        if frees && !self.has(Bug::LocalCommitIgnored) {
            process.parked.schedule_poll(Reason::LocalCommit, When::Now);
        }
        match sent.hand_off {
            Some(_) if answer.is_handed_off => process.parked.on_handed_off(*NOW),
            Some(fetch) => {
                process.parked.on_hand_off_refused(fetch);
                forward(process, Some(0));
            }
            None => {}
        }
        let seen = match self.has(Bug::ChangeMissed) {
            true => process.parked.changes,
            false => sent.changes + u64::from(frees && !self.has(Bug::LocalCommitIgnored)),
        };
        for (group, served) in sent.groups.into_iter().zip(answer.served) {
            let unserved: VecDeque<_> = group.into_iter().skip(served).collect();
            let done = GroupDone {
                unserved: unserved.into(),
                is_served: served > 0,
                lock_ms: 1,
                due_ms: None,
                no_sessions: None,
            };
            let effects = process.parked.on_poll_done(done, seen, PERIODIC, *NOW);
            let is_kept = match served > 0 {
                true => self.has(Bug::NotForwardedWhenServed),
                false => self.has(Bug::NotForwardedWhenEmpty),
            };
            forward(process, effects.forward.filter(|_| !is_kept));
        }
    }

    /// As `Scheduler::on_polls_lost`.
    fn fail(&self, process: &mut Process, sent: usize) {
        let sent = process.sent.remove(sent);
        if !sent.groups.is_empty() {
            process.parked.on_poll_ended();
        }
        let was_due = process.parked.poll_due;
        let fetches: Vec<_> = sent.hand_off.into_iter().chain(sent.groups.into_iter().flatten()).collect();
        process.parked.on_poll_lost(fetches.into_iter());
        if self.has(Bug::NoPollAfterFailure) {
            process.parked.poll_due = was_due;
        }
    }

    /// As the loop of the listener.
    fn register(&self, state: &mut State, process: usize) -> Option<()> {
        let own = &mut state.processes[process];
        let kinds: BTreeSet<Kind> = own.parked.asks().map(|ask| ask.0).collect();
        if kinds.is_subset(&own.registered) {
            return None;
        }
        let is_first = own.registered.is_empty();
        own.registered.extend(kinds);
        if is_first {
            own.unheard = (0..self.count).filter(|other| *other != process).collect();
            own.polls_when_heard = true;
        }
        let is_forgotten = match is_first {
            true => self.has(Bug::NoPollAfterRegistering),
            false => self.has(Bug::NoPollForMoreKinds),
        };
        if !is_forgotten {
            own.parked.schedule_poll(Reason::RemoteChange, When::Now);
        }
        Some(())
    }
}

impl Process {
    /// Whether a poll is due or running.
    fn polls(&self) -> bool {
        self.parked.running > 0 || !self.parked.clone().start_poll(false, 1).is_empty()
    }

    /// Whether the listener has something to do.
    fn registers(&self) -> bool {
        let has_more_kinds = self.parked.asks().any(|ask| !self.registered.contains(&ask.0));
        has_more_kinds || (self.polls_when_heard && !self.parked.fetches.is_empty())
    }
}

impl State {
    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.processes.iter().flat_map(|process| &process.sent).filter_map(|sent| sent.answer.as_ref())
    }

    /// Whether a poll, a registration or a notification is on its way that can lead to another poll.
    fn is_busy(&self) -> bool {
        !self.notifications.is_empty()
            || self.processes.iter().any(|process| {
                process.polls()
                    || !process.sent.is_empty()
                    || process.forward.queues.turns
                    || process.registers()
                    // A lane that is woken forwards it.
                    || process.parked.clone().unusable_after_drop().is_some()
            })
    }

    /// Whether an item stays although a parked fetch could have it.
    fn has_lost_wake_up(&self) -> bool {
        let waits = |fetch: &ModelFetch| !fetch.caller.is_gone && self.items[fetch.ask.0] > 0;
        !self.is_busy() && self.processes.iter().any(|process| process.parked.fetches.iter().any(waits))
    }
}

impl Parked<KindAsk, ModelCaller> {
    /// What a lane forwards that finds the callers of all fetches gone.
    fn unusable_after_drop(mut self) -> Option<Hops> {
        self.drop_gone();
        self.poll_due.then(|| self.unusable_notification()).flatten()
    }
}

fn two(bug: Option<Bug>) -> Processes {
    Processes { count: 2, commits: 2, fetches: 2, mishaps: 1, bug }
}

fn three(bug: Option<Bug>) -> Processes {
    Processes { count: 3, commits: 1, fetches: 2, mishaps: 1, bug }
}

#[test]
fn no_wake_up_is_lost_in_any_order_of_events() {
    for (name, model, least) in [("two", two(None), 10_000), ("three", three(None), 10_000)] {
        let checker = model.checker().threads(2).spawn_bfs().join();
        println!("{name} processes: {} states", checker.unique_state_count());
        assert!(checker.unique_state_count() > least, "{} states", checker.unique_state_count());
        checker.assert_no_discovery(NO_LOST_WAKE_UP);
        for property in
            checker.model().properties().into_iter().filter(|property| property.name != NO_LOST_WAKE_UP)
        {
            let found = checker.discovery(property.name).is_some();
            assert!(found || property.name.contains("twice"), "{name} processes: never '{}'", property.name);
        }
    }
}

#[test]
fn every_known_way_to_lose_a_wake_up_is_found() {
    for bug in BUGS {
        let finds = |model: Processes| {
            let enough = HasDiscoveries::AllOf(BTreeSet::from([NO_LOST_WAKE_UP]));
            let checker = model.checker().finish_when(enough).spawn_bfs().join();
            let way = checker.discovery(NO_LOST_WAKE_UP).map(|path| format!("{:?}", path.into_actions()));
            way.inspect(|way| println!("{bug:?}: {way}")).is_some()
        };
        assert!(finds(two(Some(bug))) || finds(three(Some(bug))), "{bug:?} loses no wake-up");
    }
}
