//! The slot table. Runtimes write heartbeats, read the table and replace it under `If-Match`, with the functions that ship.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a runtime stalls | no action is forced, and time passes |
//! | a runtime dies or joins | `Die`, `Join` |
//! | another runtime replaces the table between a runtime's reading and writing | `Read` and `Write` are two steps |
//!
//! A tick is a third of a lease, which is the interval of heartbeats.

use super::search::{CAN_END, ForbiddenEvents, Protocol, never};
use crate::ids::Uid;
use crate::slots::{HEARTBEAT_MS, Heartbeat, LEASE_MS, SKEW_MS, Table, may_serve};
use stateright::{Model, Property};
use std::collections::BTreeSet;

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// The table is replaced without `If-Match`.
    NoIfMatch,
    /// A runtime that cannot write heartbeats serves its slots on.
    StalledServes,
    /// A runtime keeps the slots that exceed its share.
    ExcessKept,
    /// Slots of dead runtimes are not shared out.
    DeadKeepSlots,
    /// A runtime takes slots of live runtimes.
    LiveRobbed,
}

const EPOCH_REUSED: &str = "no epoch of a slot has two owners";
const STOLEN: &str = "a serving owner loses a slot only by its own write";
const SERVED_TWICE: &str = "no two runtimes serve one slot";
const EXPIRED_SERVES: &str = "no runtime serves a slot whose owner is regarded as dead";

const RUNTIMES: usize = 3;
const SLOTS: usize = 3;
const TICK_MS: u64 = HEARTBEAT_MS;
/// Older heartbeats are alike.
const OLDEST_MS: u64 = LEASE_MS + SKEW_MS + TICK_MS;

#[derive(Clone)]
pub(super) struct Slots {
    /// Runtimes at the start, deaths and joins that may happen.
    live: usize,
    deaths: u8,
    joins: u8,
    bug: Option<Bug>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Runtime {
    is_alive: bool,
    /// The age of its last heartbeat, for itself and for others; `None`: it wrote none.
    age_ms: Option<u64>,
    /// The table that it read, and whether it is still the stored one.
    read: Option<(Table, bool)>,
    /// The slots that it serves, as of its last reading.
    serves: BTreeSet<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    table: Table,
    runtimes: [Runtime; RUNTIMES],
    deaths: u8,
    joins: u8,
    forbidden: ForbiddenEvents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Tick,
    Beat(usize),
    Read(usize),
    Write(usize),
    Die(usize),
    Join(usize),
}

impl Model for Slots {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let runtime = |nth| Runtime {
            is_alive: nth < self.live,
            age_ms: (nth < self.live).then_some(0),
            read: None,
            serves: BTreeSet::new(),
        };
        vec![State {
            table: Table::with_slots(SLOTS),
            runtimes: [0, 1, 2].map(runtime),
            deaths: self.deaths,
            joins: self.joins,
            forbidden: ForbiddenEvents::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.push(Action::Tick);
        for (nth, runtime) in state.runtimes.iter().enumerate() {
            match runtime.is_alive {
                true => {
                    actions.extend([Action::Beat(nth), Action::Read(nth)]);
                    actions.extend(runtime.read.as_ref().map(|_| Action::Write(nth)));
                    actions.extend((state.deaths > 0).then_some(Action::Die(nth)));
                }
                false => {
                    let is_new = runtime.age_ms.is_none();
                    actions.extend((is_new && state.joins > 0).then_some(Action::Join(nth)));
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => {
                for runtime in &mut state.runtimes {
                    runtime.age_ms = runtime.age_ms.map(|age_ms| (age_ms + TICK_MS).min(OLDEST_MS));
                    runtime.stop_if_stalled(self.has(Bug::StalledServes));
                }
            }
            Action::Beat(nth) => state.runtimes[nth].age_ms = Some(0),
            Action::Read(nth) => {
                let table = state.table.clone();
                let runtime = &mut state.runtimes[nth];
                runtime.serves = served(&table, nth);
                runtime.stop_if_stalled(self.has(Bug::StalledServes));
                runtime.read = Some((table, true));
            }
            Action::Write(nth) => self.write(&mut state, nth)?,
            Action::Die(nth) => {
                state.deaths -= 1;
                let runtime = &mut state.runtimes[nth];
                *runtime =
                    Runtime { is_alive: false, read: None, serves: BTreeSet::new(), ..runtime.clone() };
            }
            Action::Join(nth) => {
                state.joins -= 1;
                state.runtimes[nth].is_alive = true;
                state.runtimes[nth].age_ms = Some(0);
            }
        }
        state.normalise();
        if state.has_expired_server() {
            state.forbidden.insert(EXPIRED_SERVES);
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![EPOCH_REUSED, STOLEN, EXPIRED_SERVES];
        properties.extend([
            Property::sometimes("slots are shared equally", |model: &Self, state: &State| {
                model.is_over(state)
            }),
            Property::sometimes("a table is read and out of date", |_, state: &State| {
                state.runtimes.iter().any(|runtime| matches!(runtime.read, Some((_, false))))
            }),
            Property::sometimes("a living runtime is regarded as dead", |_, state: &State| {
                state.runtimes.iter().any(|runtime| runtime.is_alive && !runtime.is_live_for_others())
            }),
            // Clocks agree in this model. Where they do not, the lock of the instance decides.
            Property::always(SERVED_TWICE, |_, state: &State| {
                let mut seen = BTreeSet::new();
                state.runtimes.iter().flat_map(|runtime| &runtime.serves).all(|slot| seen.insert(slot))
            }),
            Property::sometimes("a slot moves from a living runtime to another", |_, state: &State| {
                let owns = |nth: usize| !served(&state.table, nth).is_empty();
                let alive = (0..RUNTIMES).filter(|nth| state.runtimes[*nth].is_alive && owns(*nth));
                alive.count() > 1
            }),
        ]);
        properties
    }
}

impl Protocol for Slots {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::NoIfMatch, &[EPOCH_REUSED]),
        (Bug::StalledServes, &[EXPIRED_SERVES, SERVED_TWICE]),
        (Bug::ExcessKept, &[CAN_END]),
        (Bug::DeadKeepSlots, &[CAN_END]),
        (Bug::LiveRobbed, &[STOLEN]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        vec![Self { live: 2, deaths: 1, joins: 0, bug }, Self { live: 1, deaths: 0, joins: 1, bug }]
    }

    /// Every slot is served by a live runtime, and shares differ by at most one.
    fn is_over(&self, state: &State) -> bool {
        let alive: Vec<_> = state.runtimes.iter().filter(|runtime| runtime.is_alive).collect();
        let counts: Vec<usize> = alive.iter().map(|runtime| runtime.serves.len()).collect();
        let is_equal =
            counts.iter().max().zip(counts.iter().min()).is_none_or(|(most, least)| most - least <= 1);
        alive.is_empty() || (is_equal && counts.iter().sum::<usize>() == SLOTS)
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Die(_) | Action::Join(_))
    }
}

impl Slots {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// A runtime replaces the table that it read by the rebalanced one.
    fn write(&self, state: &mut State, nth: usize) -> Option<()> {
        const NOW_MS: u64 = 1_000_000;
        let (read, is_current) = state.runtimes[nth].read.take()?;
        if !is_current && !self.has(Bug::NoIfMatch) {
            return Some(());
        }
        let own = uid(nth);
        let regarded = |(nth, runtime): (usize, &Runtime)| {
            let age_ms = runtime.age_ms?;
            let age_ms = if self.has(Bug::DeadKeepSlots) { 0 } else { age_ms };
            Some(Heartbeat { runtime: uid(nth), at_ms: NOW_MS - age_ms })
        };
        let mut heartbeats: Vec<Heartbeat> = state.runtimes.iter().enumerate().filter_map(regarded).collect();
        if self.has(Bug::LiveRobbed) {
            heartbeats.clear();
        }
        let next = read.rebalanced(own, &heartbeats, NOW_MS)?;
        let released = next.slots().iter().zip(read.slots());
        if self.has(Bug::ExcessKept)
            && released
                .into_iter()
                .any(|(after, before)| before.owner == Some(own) && after.owner != Some(own))
        {
            return Some(());
        }
        self.note(state, nth, &next);
        state.table = next;
        for runtime in &mut state.runtimes {
            runtime.read.iter_mut().for_each(|(_, is_current)| *is_current = false);
        }
        let runtime = &mut state.runtimes[nth];
        runtime.serves = served(&state.table, nth);
        runtime.stop_if_stalled(self.has(Bug::StalledServes));
        Some(())
    }

    /// Notes the effects of a write, for the properties.
    fn note(&self, state: &mut State, nth: usize, next: &Table) {
        for (index, (slot, before)) in next.slots().iter().zip(state.table.slots()).enumerate() {
            if slot == before {
                continue;
            }
            if slot.epoch <= before.epoch {
                state.forbidden.insert(EPOCH_REUSED);
            }
            let is_robbed = |(other, runtime): (usize, &Runtime)| {
                other != nth
                    && before.owner == Some(uid(other))
                    && runtime.is_alive
                    && runtime.serves.contains(&index)
            };
            if state.runtimes.iter().enumerate().any(is_robbed) {
                state.forbidden.insert(STOLEN);
            }
        }
    }
}

impl Runtime {
    fn is_live_for_others(&self) -> bool {
        self.age_ms.is_some_and(|age_ms| age_ms < LEASE_MS + SKEW_MS)
    }

    /// A runtime without an accepted heartbeat for a lease serves nothing.
    fn stop_if_stalled(&mut self, serves_on: bool) {
        let may_serve = self.age_ms.is_some_and(|age_ms| may_serve(0, age_ms));
        if !may_serve && !serves_on {
            self.serves.clear();
        }
    }
}

impl State {
    /// Only the order of the epochs of a slot matters.
    fn normalise(&mut self) {
        for index in 0..SLOTS {
            let tables =
                self.runtimes.iter_mut().filter_map(|runtime| runtime.read.as_mut().map(|(table, _)| table));
            let tables = tables.chain([&mut self.table]).map(|table| &mut table.slots_mut()[index].epoch);
            let mut epochs: Vec<&mut u32> = tables.collect();
            let known: BTreeSet<u32> = epochs.iter().map(|epoch| **epoch).collect();
            let rank = |epoch: u32| u32::try_from(known.range(..epoch).count()).unwrap_or(u32::MAX);
            epochs.iter_mut().for_each(|epoch| **epoch = rank(**epoch));
        }
    }

    fn has_expired_server(&self) -> bool {
        let is_expired = |runtime: &Runtime| !runtime.serves.is_empty() && !runtime.is_live_for_others();
        self.runtimes.iter().any(is_expired)
    }
}

fn uid(runtime: usize) -> Uid {
    Uid(runtime as u128)
}

fn served(table: &Table, nth: usize) -> BTreeSet<usize> {
    let slots = table.slots().iter().enumerate();
    slots.filter(|(_, slot)| slot.owner == Some(uid(nth))).map(|(index, _)| index).collect()
}
