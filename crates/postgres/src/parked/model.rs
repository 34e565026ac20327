//! Parked fetches of several processes on one queue, in every order of their polls, commits, failures and notifications.
//!
//! Processes run the transitions of [`ParkedFetches`] and [`Forward`] that ship. The model adds the server: the items that are
//! fetchable, the registrations, and the notifications in flight. Time does not pass, so no poll that is scheduled for later helps:
//! a fetch gets its item because a poll is due, or not at all.
//!
//! | step | is |
//! |---|---|
//! | `Fetch`, `Leave` | a caller fetches; the caller of a parked fetch goes away |
//! | `Send`, `Execute`, `End`, `Finish` | a transaction leaves its process; the server commits it; its process has the answer; its process hands out the results |
//! | `Fail` | a transaction is undone by the server |
//! | `Notified`, `Forward` | a notification arrives; the listener forwards one |
//! | `Overdue` | the notification of a commit that was put off is due |
//! | `Register`, `Hear`, `AllHeard`, `Unregister` | registrations, and when the other processes know of them |

use super::{Caller, Fetch, GroupDone, ParkedFetches, Reason, When};
use crate::ask::Ask;
use crate::notify::{Forward, Hops};
use outlast_provider_kit::queue::PerQueue;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::time::Instant;

static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);
const PERIODIC: Duration = Duration::from_secs(600);

/// Hops are counted up to this. The model drops no notification for its hops: which process the server notifies is random, and in a
/// model every choice is made.
const MOST_HOPS: Hops = 2;

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
    /// The fetch to which the stored item is handed off.
    hand_off: Option<ModelFetch>,
    notifies: bool,
    /// Whether the process notifies another one later.
    puts_off: bool,
    answer: Option<Answer>,
    /// Whether the process has the answer to the polls.
    has_ended: bool,
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
    parked: ParkedFetches<KindAsk, ModelCaller>,
    sent: Vec<Sent>,
    forward: Forward,
    /// Whether a notification is put off.
    put_off: bool,
    /// The kinds that the process is registered for; empty: not registered.
    registered: BTreeSet<Kind>,
    /// The processes that have not heard of the last registration.
    unheard: BTreeSet<usize>,
    /// The poll that follows when all processes have heard of a registration.
    polls_when_heard: bool,
    /// The processes that this one knows to be registered.
    known: BTreeSet<usize>,
    /// The number of fetches and commits that have been made.
    fetched: usize,
    committed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// A step copies the process that it changes only.
    processes: Vec<Arc<Process>>,
    /// The number of fetchable items of each kind.
    items: [u8; KINDS],
    /// Notifications in flight: receiver and hops.
    notifications: BTreeSet<(usize, Hops)>,
    /// The number of callers that may still go away, and of transactions that may still fail.
    mishaps: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Fetch(usize),
    Leave { process: usize, fetch: usize },
    Send { process: usize, commits: bool, puts_off: bool },
    Execute { process: usize, sent: usize, is_handed_off: bool, notified: Option<usize> },
    Fail { process: usize, sent: usize },
    End { process: usize, sent: usize },
    Finish { process: usize, sent: usize },
    Notified { process: usize, hops: Hops },
    Forward { process: usize, to: Option<usize> },
    Overdue(usize),
    Register(usize),
    Hear { process: usize, other: usize },
    AllHeard(usize),
    Unregister(usize),
}

/// Known ways to lose a wake-up. Each must break [`NO_LOST_WAKE_UP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A process does not poll when all have heard of its registration.
    NoPollWhenHeard,
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
    /// A notification that is put off is never sent.
    PutOffForgotten,
}

/// Each known bug, with the smallest model that shows it.
const BUGS: [(Bug, &str); 8] = [
    (Bug::NoPollWhenHeard, "growing"),
    (Bug::LocalCommitIgnored, "alone"),
    (Bug::ChangeMissed, "alone"),
    (Bug::NotForwardedWhenServed, "sharing"),
    (Bug::NotForwardedWhenEmpty, "forwarding"),
    (Bug::GoneFetchKeepsNotification, "leaving"),
    (Bug::NoPollAfterFailure, "alone"),
    (Bug::PutOffForgotten, "growing"),
];

const NO_LOST_WAKE_UP: &str = "no wake-up is lost";

/// The fetches and commits of a process, each by its kind, in their order.
#[derive(Clone, Copy)]
struct Role {
    fetches: &'static [Kind],
    commits: &'static [Kind],
}

#[derive(Clone)]
struct Processes {
    name: &'static str,
    roles: &'static [Role],
    most_steps: usize,
    mishaps: u8,
    bug: Option<Bug>,
}

impl Model for Processes {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            processes: vec![Arc::default(); self.roles.len()],
            items: [0; KINDS],
            notifications: BTreeSet::new(),
            mishaps: self.mishaps,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (process, own) in state.processes.iter().enumerate() {
            let role = self.roles[process];
            if own.fetched < role.fetches.len() {
                steps.push(Step::Fetch(process));
            }
            if own.sent.len() < 2 {
                steps.push(Step::Send { process, commits: false, puts_off: false });
                if own.committed < role.commits.len() {
                    steps.push(Step::Send { process, commits: true, puts_off: false });
                    // A process puts a notification off that it would send.
                    if !own.known.is_empty() {
                        steps.push(Step::Send { process, commits: true, puts_off: true });
                    }
                }
            }
            if state.mishaps > 0 {
                steps.extend((0..own.parked.fetches.len()).map(|fetch| Step::Leave { process, fetch }));
            }
            for (sent, transaction) in own.sent.iter().enumerate() {
                if transaction.answer.is_some() {
                    steps.push(match transaction.has_ended {
                        false => Step::End { process, sent },
                        true => Step::Finish { process, sent },
                    });
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
                let eligible: Vec<_> = (0..self.roles.len()).filter(eligible).map(Some).collect();
                let to = if eligible.is_empty() { vec![None] } else { eligible };
                steps.extend(to.into_iter().map(|to| Step::Forward { process, to }));
            }
            if own.put_off {
                steps.push(Step::Overdue(process));
            }
            // A step that changes nothing would cost a copy of the state.
            if own.asks_for_more_kinds() {
                steps.push(Step::Register(process));
            }
            if own.polls_when_heard && own.unheard.is_empty() {
                steps.push(Step::AllHeard(process));
            }
            if own.may_unregister() {
                steps.push(Step::Unregister(process));
            }
            let is_unheard = |other: &usize| state.processes[*other].unheard.contains(&process);
            let unheard = (0..self.roles.len()).filter(is_unheard);
            steps.extend(unheard.map(|other| Step::Hear { process, other }));
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
            Step::Fetch(process) => {
                let own = state.process(process);
                let ask = KindAsk(self.roles[process].fetches[own.fetched]);
                own.fetched += 1;
                let caller = ModelCaller { is_gone: false };
                own.parked.on_fetch(Fetch { ask, parks: true, is_new: true, caller });
            }
            Step::Leave { process, fetch } => {
                state.mishaps -= 1;
                state.process(process).parked.fetches[fetch].caller.is_gone = true;
            }
            Step::Send { process, commits, puts_off } => {
                let own = state.process(process);
                let brings = commits.then(|| self.roles[process].commits[own.committed]);
                own.committed += usize::from(commits);
                self.send(own, brings, puts_off);
            }
            Step::Execute { process, sent, is_handed_off, notified } => {
                let transaction = &mut Arc::make_mut(&mut state.processes[process]).sent[sent];
                execute(transaction, &mut state.items, is_handed_off);
                state.notifications.extend(notified.map(|to| (to, 0)));
            }
            Step::Fail { process, sent } => {
                state.mishaps -= 1;
                self.fail(state.process(process), sent);
            }
            // As `Scheduler::on_polls_ended`.
            Step::End { process, sent } => {
                let own = state.process(process);
                own.sent[sent].has_ended = true;
                own.parked.on_poll_ended();
            }
            Step::Finish { process, sent } => self.finish(state.process(process), sent),
            Step::Notified { process, hops } => {
                state.notifications.remove(&(process, hops));
                let own = state.process(process);
                let unusable = own.parked.on_notification(hops);
                forward(own, unusable);
            }
            Step::Forward { process, to } => {
                let own = std::mem::take(&mut state.process(process).forward);
                state.notifications.extend(to.map(|to| (to, own.hops.min(MOST_HOPS))));
            }
            Step::Overdue(process) => {
                let own = state.process(process);
                own.put_off = false;
                forward(own, Some(0));
            }
            Step::Register(process) => self.register(&mut state, process),
            Step::Hear { process, other } => {
                let is_registered = !state.processes[other].registered.is_empty();
                state.process(other).unheard.remove(&process);
                let known = &mut state.process(process).known;
                let _ = if is_registered { known.insert(other) } else { known.remove(&other) };
            }
            Step::AllHeard(process) => {
                // The pause before this poll outlasts transactions that were sent before their process heard of the registration.
                let is_unnotified =
                    |sent: &Sent| sent.answer.is_none() && sent.frees() && !sent.notifies && !sent.puts_off;
                if last.processes.iter().flat_map(|other| &other.sent).any(is_unnotified) {
                    return None;
                }
                let own = state.process(process);
                own.polls_when_heard = false;
                if self.bug != Some(Bug::NoPollWhenHeard) {
                    own.parked.schedule_poll(Reason::RemoteChange, When::Now);
                }
            }
            Step::Unregister(process) => {
                let own = state.process(process);
                own.registered.clear();
                own.polls_when_heard = false;
                own.unheard = self.committers(process);
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
            Property::sometimes("a notification is forwarded", |_, state: &State| {
                state.notifications.iter().any(|(_, hops)| *hops > 0)
            }),
            Property::sometimes("a notification is put off", |_, state: &State| {
                state.processes.iter().any(|process| process.put_off)
            }),
            Property::sometimes("a change comes while a poll runs", |_, state: &State| {
                let missed = |process: &Arc<Process>| {
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

/// Replaces the count of changes of each transaction by whether a change came after it was sent, which is all that matters.
fn normalise(process: &mut Arc<Process>) {
    let now = process.parked.changes;
    if now == 1 {
        return;
    }
    let process = Arc::make_mut(process);
    process.sent.iter_mut().for_each(|sent| sent.changes = u64::from(sent.changes == now));
    process.parked.changes = 1;
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

    /// The other processes that commit: only these need to know of a registration.
    fn committers(&self, process: usize) -> BTreeSet<usize> {
        let commits = |other: &usize| *other != process && !self.roles[*other].commits.is_empty();
        (0..self.roles.len()).filter(commits).collect()
    }

    /// The processes that the server may notify of a commit.
    fn receivers(&self, state: &State, sender: usize, notifies: bool) -> Vec<Option<usize>> {
        let registered = |to: &usize| *to != sender && !state.processes[*to].registered.is_empty();
        let receivers: Vec<_> = (0..self.roles.len()).filter(registered).map(Some).collect();
        if notifies && !receivers.is_empty() { receivers } else { vec![None] }
    }

    /// As `Scheduler::next_transaction`.
    fn send(&self, process: &mut Process, brings: Option<Kind>, puts_off: bool) {
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
            // No transaction is sent, but fetches of dropped callers are removed.
            return;
        }
        process.sent.push(Sent {
            has_ended: poll.is_empty(),
            changes: poll.changes,
            groups: poll.groups,
            brings,
            hand_off,
            notifies: frees && !process.known.is_empty() && !puts_off,
            puts_off: frees && puts_off,
            answer: None,
        });
    }

    /// As `Scheduler::on_lane_done`.
    fn finish(&self, process: &mut Process, sent: usize) {
        let mut sent = process.sent.remove(sent);
        let frees = sent.frees();
        let Some(answer) = sent.answer.take() else { return };
        process.put_off |= sent.puts_off && !self.has(Bug::PutOffForgotten);
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
    fn register(&self, state: &mut State, process: usize) {
        let own = state.process(process);
        let kinds: BTreeSet<Kind> = own.parked.asks().map(|ask| ask.0).collect();
        let is_first = own.registered.is_empty();
        own.registered.extend(kinds);
        if is_first {
            own.unheard = self.committers(process);
            own.polls_when_heard = true;
        }
        own.parked.schedule_poll(Reason::RemoteChange, When::Now);
    }
}

impl Process {
    /// Whether a poll is due or running.
    fn polls(&self) -> bool {
        self.parked.running > 0 || !self.parked.clone().start_poll(false, 1).is_empty()
    }

    /// Whether fetches are parked for kinds that the process is not registered for.
    fn asks_for_more_kinds(&self) -> bool {
        self.parked.asks().any(|ask| !self.registered.contains(&ask.0))
    }

    fn may_unregister(&self) -> bool {
        !self.registered.is_empty() && self.parked.fetches.is_empty() && self.unheard.is_empty()
    }

    /// Whether the listener registers, or polls after a registration.
    fn registers(&self) -> bool {
        self.asks_for_more_kinds() || (self.polls_when_heard && !self.parked.fetches.is_empty())
    }
}

impl State {
    fn process(&mut self, process: usize) -> &mut Process {
        Arc::make_mut(&mut self.processes[process])
    }

    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.processes.iter().flat_map(|process| &process.sent).filter_map(|sent| sent.answer.as_ref())
    }

    /// Whether a poll, a registration or a notification is in flight that can lead to another poll.
    fn is_busy(&self) -> bool {
        !self.notifications.is_empty()
            || self.processes.iter().any(|process| {
                process.polls()
                    || !process.sent.is_empty()
                    || process.forward.queues.turns
                    || process.put_off
                    || process.registers()
                    // A lane that is woken forwards the notification.
                    || process.parked.clone().unusable_after_drop().is_some()
            })
    }

    /// Whether an item stays although a parked fetch could have it.
    fn has_lost_wake_up(&self) -> bool {
        let waits = |fetch: &ModelFetch| !fetch.caller.is_gone && self.items[fetch.ask.0] > 0;
        self.processes.iter().any(|process| process.parked.fetches.iter().any(waits)) && !self.is_busy()
    }
}

impl ParkedFetches<KindAsk, ModelCaller> {
    /// The notification that a lane forwards when it finds that the callers of all fetches are dropped.
    fn unusable_after_drop(mut self) -> Option<Hops> {
        self.drop_gone();
        self.poll_due.then(|| self.unusable_notification()).flatten()
    }
}

/// One process whose own commits bring items.
const ALONE: &[Role] = &[Role { fetches: &[0, 1], commits: &[0, 0] }];
/// A process that commits and fetches, and one that fetches.
const PAIR: &[Role] = &[Role { fetches: &[0], commits: &[0] }, Role { fetches: &[0], commits: &[] }];
/// A process that commits, and one that registers for the item's kind after another kind.
const GROWING: &[Role] = &[Role { fetches: &[], commits: &[1] }, Role { fetches: &[0, 1], commits: &[] }];
/// A process that commits, one that is eligible for the item, and one that is not and forwards its notification.
const FORWARDING: &[Role] = &[
    Role { fetches: &[], commits: &[1] },
    Role { fetches: &[0, 1], commits: &[] },
    Role { fetches: &[0], commits: &[] },
];
/// A process that commits two items, and two that fetch one each.
const SHARING: &[Role] = &[
    Role { fetches: &[], commits: &[0, 0] },
    Role { fetches: &[0], commits: &[] },
    Role { fetches: &[0], commits: &[] },
];
/// A process that commits one item, and two processes of which one may give up.
const LEAVING: &[Role] = &[
    Role { fetches: &[], commits: &[0] },
    Role { fetches: &[0], commits: &[] },
    Role { fetches: &[0], commits: &[] },
];

fn models(bug: Option<Bug>) -> [Processes; 6] {
    [
        Processes { name: "alone", most_steps: ALL_STEPS, roles: ALONE, mishaps: 1, bug },
        Processes { name: "pair", most_steps: ALL_STEPS, roles: PAIR, mishaps: 1, bug },
        Processes { name: "growing", most_steps: ALL_STEPS, roles: GROWING, mishaps: 0, bug },
        Processes { name: "forwarding", most_steps: FIRST_STEPS, roles: FORWARDING, mishaps: 0, bug },
        Processes { name: "sharing", most_steps: FIRST_STEPS, roles: SHARING, mishaps: 0, bug },
        Processes { name: "leaving", most_steps: FIRST_STEPS, roles: LEAVING, mishaps: 1, bug },
    ]
}

/// More steps than a model of one or two processes has.
const ALL_STEPS: usize = 1_000;
/// The models of three processes have millions of states: every order of this many steps is explored.
const FIRST_STEPS: usize = 15;

#[test]
fn no_wake_up_is_lost_in_any_order_of_events() {
    let (mut states, mut happened) = (0, BTreeSet::new());
    for model in models(None) {
        let name = model.name;
        let most_steps = model.most_steps;
        let checker = model.checker().threads(2).target_max_depth(most_steps).spawn_bfs().join();
        let is_whole = most_steps == FIRST_STEPS || checker.max_depth() < most_steps;
        assert!(is_whole, "{name}: more than {most_steps} steps");
        states += checker.unique_state_count();
        checker.assert_no_discovery(NO_LOST_WAKE_UP);
        happened.extend(checker.discoveries().into_keys());
    }
    assert!(states > 10_000, "{states} states: a bound excludes most of the protocol");
    let expected = models(None)[0].properties().into_iter().map(|property| property.name);
    let never: Vec<_> =
        expected.filter(|name| *name != NO_LOST_WAKE_UP && !happened.contains(name)).collect();
    assert_eq!(never, [""; 0], "the models reach every property, so they exercise the protocol");
}

#[test]
fn every_known_way_to_lose_a_wake_up_is_found() {
    for (bug, name) in BUGS {
        let model = models(Some(bug)).into_iter().find(|model| model.name == name).unwrap();
        let enough = HasDiscoveries::AllOf(BTreeSet::from([NO_LOST_WAKE_UP]));
        // A search in depth finds these bugs with half the states that a search in breadth needs.
        let checker = model.checker().threads(2).finish_when(enough).spawn_dfs().join();
        assert!(checker.discovery(NO_LOST_WAKE_UP).is_some(), "{bug:?} loses no wake-up");
    }
}
