//! Deletion of several instances, which are in several partitions. A record says that they are being deleted; each instance is
//! marked with the record; the flip of the record is the moment at which all of them are gone; a purge removes the documents.
//!
//! **Invariant:** a marked instance is gone if its record is flipped, and only then. An absent record counts as given up.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a worker locks an instance and commits turns | `Lock`, `Commit` |
//! | the deleter stalls or dies; another process gives the record up | `GiveUp` |
//! | any process purges a flipped record, also two at once | `ReadToPurge`, `Purge` |
//! | an instance is created again under its id | `Recreate` |

use super::search::{CAN_END, ForbiddenEvents, Protocol, never};
use stateright::{Model, Property};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A mark is written without `If-Match`.
    MarkWithoutIfMatch,
    /// The record is flipped without `If-Match`.
    FlipWithoutIfMatch,
    /// The record is flipped before all instances are marked.
    FlippedEarly,
    /// A marked instance counts as gone.
    MarkMeansGone,
    /// The purge removes documents whatever their version.
    PurgeWithoutIfMatch,
    /// The record is removed before the purge is complete.
    RecordRemovedEarly,
    /// A worker locks an instance without reading its record.
    RecordIgnored,
    /// A record whose deleter died stays.
    NotGivenUp,
}

const HALF: &str = "the instances of a record are gone together";
const RESURRECTED: &str = "no instance returns after it was gone";
const COMMITTED_GONE: &str = "no turn is committed on an instance that is gone";
const LOST_TURN: &str = "no committed turn is overwritten";
const PURGED_NEW: &str = "no purge removes an instance that was created again";

const INSTANCES: usize = 2;
const TURNS: u8 = 2;

#[derive(Clone)]
pub(super) struct Deletes {
    bug: Option<Bug>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Instance {
    is_new: bool,
    turns: u8,
    is_marked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Record {
    NotYet,
    Pending,
    Flipped,
    GivenUp,
    Removed,
}

/// An instance as a process read it, and whether it is still so.
type Read = Option<(Instance, bool)>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    instances: [Option<Instance>; INSTANCES],
    record: Record,
    /// The instances as the deleter, the purger and the worker read them.
    deleter: [Read; INSTANCES],
    purger: [Read; INSTANCES],
    worker: [Read; INSTANCES],
    /// The marks that the deleter knows to be written.
    marked: [bool; INSTANCES],
    /// For the properties: the old instances that were gone once.
    was_gone: [bool; INSTANCES],
    forbidden: ForbiddenEvents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Begin,
    ReadToMark(usize),
    Mark(usize),
    Flip,
    GiveUp,
    ReadToPurge(usize),
    Purge(usize),
    RemoveRecord,
    Lock(usize),
    Commit(usize),
    Recreate(usize),
}

impl Model for Deletes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            instances: [Some(Instance { is_new: false, turns: 0, is_marked: false }); INSTANCES],
            record: Record::NotYet,
            deleter: [None; INSTANCES],
            purger: [None; INSTANCES],
            worker: [None; INSTANCES],
            marked: [false; INSTANCES],
            was_gone: [false; INSTANCES],
            forbidden: ForbiddenEvents::new(),
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Action>) {
        actions.extend([Action::Begin, Action::Flip, Action::GiveUp, Action::RemoveRecord]);
        for nth in 0..INSTANCES {
            actions.extend([
                Action::ReadToMark(nth),
                Action::Mark(nth),
                Action::ReadToPurge(nth),
                Action::Purge(nth),
            ]);
            actions.extend([Action::Lock(nth), Action::Commit(nth), Action::Recreate(nth)]);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin => {
                state.record = (state.record == Record::NotYet).then_some(Record::Pending)?;
            }
            Action::ReadToMark(nth) => {
                let read =
                    state.instances[nth].filter(|_| !state.marked[nth] && !self.is_gone(&state, nth))?;
                state.deleter[nth] = (state.record != Record::NotYet).then_some((read, true));
            }
            Action::Mark(nth) => {
                let (read, is_current) = state.deleter[nth].take()?;
                let is_written =
                    is_current || (self.has(Bug::MarkWithoutIfMatch) && state.instances[nth].is_some());
                if is_written {
                    state.write(nth, Some(Instance { is_marked: true, ..read }));
                    state.marked[nth] = true;
                }
            }
            Action::Flip => self.flip(&mut state)?,
            Action::GiveUp => {
                let is_pending = state.record == Record::Pending && !self.has(Bug::NotGivenUp);
                state.record = is_pending.then_some(Record::GivenUp)?;
            }
            Action::ReadToPurge(nth) => {
                let read =
                    state.instances[nth].filter(|read| read.is_marked && state.record == Record::Flipped)?;
                state.purger[nth] = Some((read, true));
            }
            Action::Purge(nth) => {
                let (_, is_current) = state.purger[nth].take()?;
                if is_current || self.has(Bug::PurgeWithoutIfMatch) {
                    if state.instances[nth].is_some_and(|instance| instance.is_new) {
                        state.forbidden.insert(PURGED_NEW);
                    }
                    state.write(nth, None);
                }
            }
            Action::RemoveRecord => {
                let is_purged = !state.instances.iter().flatten().any(|instance| instance.is_marked);
                let may_go = match state.record {
                    Record::Flipped => is_purged || self.has(Bug::RecordRemovedEarly),
                    Record::GivenUp => true,
                    _ => false,
                };
                state.record = may_go.then_some(Record::Removed)?;
            }
            Action::Lock(nth) => self.lock(&mut state, nth)?,
            Action::Commit(nth) => {
                let (read, is_current) = state.worker[nth].take()?;
                if is_current && read.turns < TURNS {
                    if self.is_gone(&state, nth) {
                        state.forbidden.insert(COMMITTED_GONE);
                    }
                    state.write(nth, Some(Instance { turns: read.turns + 1, ..read }));
                }
            }
            Action::Recreate(nth) => {
                let is_free = state.instances[nth].is_none_or(|old| !old.is_new && self.is_gone(&state, nth));
                if !is_free {
                    return None;
                }
                state.write(nth, Some(Instance { is_new: true, turns: 0, is_marked: false }));
            }
        }
        for nth in 0..INSTANCES {
            let is_old = state.instances[nth].is_some_and(|instance| !instance.is_new);
            let is_gone = !is_old || self.is_gone(&state, nth);
            if state.was_gone[nth] && !is_gone {
                state.forbidden.insert(RESURRECTED);
            }
            state.was_gone[nth] |= is_gone;
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = never![RESURRECTED, COMMITTED_GONE, LOST_TURN, PURGED_NEW];
        properties.extend([
            Property::always(HALF, |_, state: &State| state.was_gone[0] == state.was_gone[1]),
            Property::sometimes("all instances are purged", |_, state: &State| {
                state.instances.iter().all(Option::is_none) && state.record == Record::Removed
            }),
            Property::sometimes("an instance is created again before it is purged", |_, state: &State| {
                let is_new = |instance: &Instance| instance.is_new;
                state.purger.iter().flatten().any(|(_, is_current)| !is_current)
                    && state.instances.iter().flatten().any(is_new)
            }),
            Property::sometimes("a turn is committed on a marked instance", |_, state: &State| {
                let is_marked = |instance: &Instance| instance.turns > 0 && instance.is_marked;
                state.record == Record::GivenUp && state.instances.iter().flatten().any(is_marked)
            }),
        ]);
        properties
    }
}

impl Protocol for Deletes {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::MarkWithoutIfMatch, &[LOST_TURN]),
        (Bug::FlipWithoutIfMatch, &[HALF]),
        (Bug::FlippedEarly, &[HALF]),
        (Bug::MarkMeansGone, &[HALF]),
        (Bug::PurgeWithoutIfMatch, &[PURGED_NEW]),
        (Bug::RecordRemovedEarly, &[RESURRECTED]),
        (Bug::RecordIgnored, &[COMMITTED_GONE]),
        (Bug::NotGivenUp, &[CAN_END]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        vec![Self { bug }]
    }

    /// The instances are gone, or can commit turns again.
    fn is_over(&self, state: &State) -> bool {
        let is_unlocked = |instance: &Instance| !instance.is_marked;
        let is_usable = state.instances.iter().flatten().all(is_unlocked);
        is_usable && !matches!(state.record, Record::NotYet | Record::Pending)
    }

    /// The deleter may die after any step.
    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::ReadToMark(_) | Action::Mark(_) | Action::Flip)
    }
}

impl Deletes {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn is_gone(&self, state: &State, nth: usize) -> bool {
        let is_marked = state.instances[nth].is_none_or(|instance| instance.is_marked);
        is_marked && (state.record == Record::Flipped || self.has(Bug::MarkMeansGone))
    }

    fn flip(&self, state: &mut State) -> Option<()> {
        let is_known = match self.has(Bug::FlippedEarly) {
            true => state.marked.contains(&true),
            false => state.marked.iter().all(|is_marked| *is_marked),
        };
        let may_flip = match state.record {
            Record::Pending => true,
            Record::GivenUp => self.has(Bug::FlipWithoutIfMatch),
            _ => false,
        };
        state.record = (is_known && may_flip).then_some(Record::Flipped)?;
        Some(())
    }

    /// A worker reads an instance, and its record if it is marked. The lock clears a mark whose record was given up. A pending
    /// record keeps the worker out.
    fn lock(&self, state: &mut State, nth: usize) -> Option<()> {
        let read = state.instances[nth]?;
        let is_kept_out = read.is_marked && matches!(state.record, Record::Pending | Record::Flipped);
        if is_kept_out && !self.has(Bug::RecordIgnored) {
            return None;
        }
        let keeps_mark = self.has(Bug::RecordIgnored) && is_kept_out;
        let locked = Instance { is_marked: keeps_mark, ..read };
        state.write(nth, Some(locked));
        state.worker[nth] = Some((locked, true));
        Some(())
    }
}

impl State {
    /// Replaces or removes an instance. All readers of an earlier version are out of date.
    fn write(&mut self, nth: usize, instance: Option<Instance>) {
        if let (Some(old), Some(new)) = (self.instances[nth], instance)
            && old.is_new == new.is_new
            && new.turns < old.turns
        {
            self.forbidden.insert(LOST_TURN);
        }
        self.instances[nth] = instance;
        let readers = [&mut self.deleter, &mut self.purger, &mut self.worker];
        readers
            .into_iter()
            .filter_map(|reader| reader[nth].as_mut())
            .for_each(|(_, is_current)| *is_current = false);
    }
}
