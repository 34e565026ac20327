//! The knowledge of this process about waiting messages and activities.
//!
//! The documents in the partitions are authoritative; this module holds an index of them in memory. Writes of this process enter
//! the index immediately; hints ([`crate::hints`]) and the repair query ([`crate::repair`]) add the writes of other processes. A
//! wrong entry costs a request and loses no message: a fetch reads the partition before it takes a lease.

use crate::hints::TurnHint;
use crate::hold::LOOK_AGAIN_MS;
use crate::limit;
use crate::message::Waiting;
use crate::ready_activity::{ActivityKey, IndexedActivity};
use crate::recent::Recent;
use crate::slots::slot_of;
use outlast_provider::saturating_ms;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The position of a message in the order of delivery: the time at which the message is visible, and its number.
type Place = (u64, u64);

#[derive(Default)]
pub(crate) struct Ready {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    turns: HashMap<String, Turns>,
    /// The first message of every instance.
    line: BTreeSet<(Place, String)>,
    pub(crate) activities: BTreeMap<ActivityKey, IndexedActivity>,
    /// Counts changes, so that a fetch does not forget a message that arrived while it read.
    generation: u64,
    /// Instances of other slots that this process took by an offer: it takes their next messages too.
    adopted: HashSet<String>,
    /// Messages that this process consumed. Hints of them may come later.
    consumed: Recent,
}

#[derive(Default)]
struct Turns {
    slot: u8,
    /// The owner of the slot offers the instance to every runtime.
    is_offered: bool,
    /// The time until which no message is delivered.
    until: u64,
    /// The instance was held when a fetch read it. The next message may be a cancellation, which releases it.
    is_held: bool,
    /// A fetch of this process reads the instance.
    is_busy: bool,
    /// Another fetch passed the instance over meanwhile, and must try it again.
    is_wanted: bool,
    messages: BTreeMap<String, Message>,
    first: Option<Place>,
    /// A counter of changes after which a fetch that refused the instance tries it again.
    version: u64,
}

#[derive(Clone, Copy)]
struct Message {
    place: Place,
    /// The counter of changes when it was inserted.
    inserted: u64,
    /// The time at which its hint was read. The message may be stored after its hint, so fetches repeat their query for it while
    /// its write can still arrive.
    hinted_at: Option<u64>,
}

/// The most instances of other slots that are remembered.
const MOST_ADOPTED: usize = 4_096;

/// The pause between the first two queries for a message that is stored after its hint.
const EARLY_PAUSE_MS: u64 = 100;

impl Message {
    /// The time of the next query for a message that a fetch did not find; `None` if its write can no longer arrive.
    fn again_at(&self, now: u64) -> Option<u64> {
        let since = now.saturating_sub(self.hinted_at?);
        (since < saturating_ms(limit::LONGEST)).then(|| now.saturating_add(since.max(EARLY_PAUSE_MS)))
    }
}

/// The instances that a fetch of turns takes at once.
pub(crate) struct Choice<'a> {
    /// Instances that the caller tried in this round.
    pub(crate) tried: &'a HashSet<String>,
    /// Instances that its filter refuses, with their versions.
    pub(crate) refused: &'a HashMap<String, u64>,
    /// Whether this process looks for work of the slot.
    pub(crate) serves: &'a dyn Fn(u8) -> bool,
    /// The time for which work of other slots is left to their owners.
    pub(crate) grace_ms: u64,
}

impl Choice<'_> {
    /// The time at which the caller takes the instance, if its first message is visible at this time.
    fn due(&self, turns: &Turns, visible_at: u64) -> u64 {
        let is_served = turns.is_offered || self.grace_ms == 0 || (self.serves)(turns.slot);
        visible_at.saturating_add(if is_served { 0 } else { self.grace_ms })
    }
}

/// A message as a fetch read it.
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) visible_at: u64,
    pub(crate) sequence: u64,
}

/// The instance that a fetch tries next, or the time at which there may be one.
pub(crate) enum Next {
    Instance(String),
    Nothing { due: Option<u64> },
}

impl Ready {
    /// Resolves at the next change.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_waiters();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance whose messages have waited longest, reserved for the caller.
    pub(crate) fn next_turn(&self, now: u64, choice: &Choice<'_>) -> Next {
        let mut state = self.state();
        let State { turns, line, .. } = &mut *state;
        let is_of_interest = |instance: &String, turns: &Turns| {
            !choice.tried.contains(instance) && choice.refused.get(instance) != Some(&turns.version)
        };
        for ((visible_at, _), instance) in line.iter() {
            if *visible_at > now {
                break;
            }
            let Some(found) = turns.get_mut(instance) else { continue };
            if found.until > now || !is_of_interest(instance, found) || choice.due(found, *visible_at) > now {
                continue;
            }
            if found.is_busy {
                found.is_wanted = true;
                continue;
            }
            (found.is_busy, found.is_wanted) = (true, false);
            return Next::Instance(instance.clone());
        }
        let due = turns.iter().filter(|(instance, turns)| !turns.is_busy && is_of_interest(instance, turns));
        let due = due
            .filter_map(|(_, turns)| Some(choice.due(turns, turns.first?.0).max(turns.until)))
            .filter(|due| *due > now)
            .min();
        Next::Nothing { due }
    }

    /// The version of an instance, for a fetch whose filter refuses it.
    pub(crate) fn version(&self, instance: &str) -> u64 {
        self.state().turns.get(instance).map_or(0, |turns| turns.version)
    }

    /// The counter of changes, before a read.
    pub(crate) fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Ends the reservation of an instance.
    pub(crate) fn release(&self, instance: &str) {
        let is_wanted = {
            let mut state = self.state();
            let turns = state.turns.get_mut(instance);
            let is_wanted = turns.is_some_and(|turns| {
                turns.is_busy = false;
                std::mem::take(&mut turns.is_wanted)
            });
            state.place(instance);
            is_wanted
        };
        if is_wanted {
            self.wake();
        }
    }

    /// Adds a message that was stored.
    pub(crate) fn arrived(&self, instance: &str, id: &str, visible_at: u64, sequence: u64) {
        self.state().insert(instance, id, (visible_at, sequence));
        self.wake();
    }

    /// Adds a message that a query found. A known entry is not changed: it may hold a newer delay.
    pub(crate) fn found(&self, instance: &str, id: &str, visible_at: u64, sequence: u64) -> bool {
        let mut state = self.state();
        let is_known = state.turns.get(instance).is_some_and(|turns| turns.messages.contains_key(id));
        if !is_known {
            state.insert(instance, id, (visible_at, sequence));
        }
        !is_known
    }

    /// Notes that a fetch leased the instance.
    pub(crate) fn adopt(&self, instance: &str) {
        let mut state = self.state();
        if state.turns.get(instance).is_some_and(|turns| turns.is_offered) {
            if state.adopted.len() >= MOST_ADOPTED {
                state.adopted.clear();
            }
            state.adopted.insert(instance.to_string());
        }
    }

    /// Adds a message whose hint was read.
    pub(crate) fn hinted(&self, hint: &TurnHint, now: u64) {
        let mut state = self.state();
        if state.consumed.contains(&hint.instance, hint.sequence) {
            return;
        }
        let turns = state.turns_of(&hint.instance);
        turns.is_offered |= hint.is_offer;
        turns.look_again();
        if let Some(known) = turns.messages.get_mut(&hint.message) {
            // The delay of an offered message may be newer than that of the message itself.
            known.place.0 = known.place.0.min(hint.visible_at);
            state.place(&hint.instance);
            return;
        }
        state.insert(&hint.instance, &hint.message, (hint.visible_at, hint.sequence));
        let turns = state.turns.get_mut(&hint.instance);
        if let Some(message) = turns.and_then(|turns| turns.messages.get_mut(&hint.message)) {
            message.hinted_at = Some(now);
        }
    }

    /// Records the visible messages that a fetch read of an instance, and the time until which none is delivered. `generation` is
    /// of the time before the read.
    pub(crate) fn learned(&self, instance: &str, now: u64, until: u64, seen: &[Seen], generation: u64) {
        let mut state = self.state();
        let turns = state.turns_of(instance);
        turns.until = until;
        turns.messages.retain(|id, message| {
            if message.place.0 > now
                || message.inserted > generation
                || seen.iter().any(|seen| seen.id == *id)
            {
                return true;
            }
            let again_at = message.again_at(now);
            message.place.0 = again_at.unwrap_or(message.place.0);
            again_at.is_some()
        });
        for Seen { id, visible_at, sequence } in seen {
            state.insert(instance, id, (*visible_at, *sequence));
        }
        state.place(instance);
    }

    /// Records that a fetch read a held instance, and its messages. A message that arrived since the read is tried.
    pub(crate) fn learned_held(&self, instance: &str, now: u64, seen: &[Seen], generation: u64) {
        self.learned(instance, now, 0, seen, generation);
        let mut state = self.state();
        let Some(turns) = state.turns.get_mut(instance) else { return };
        let has_arrived = turns
            .messages
            .iter()
            .any(|(id, message)| message.inserted > generation && !seen.iter().any(|seen| seen.id == *id));
        if !has_arrived {
            (turns.is_held, turns.until) = (true, now.saturating_add(LOOK_AGAIN_MS));
        }
    }

    /// The messages of a held instance are set aside. A release makes them known again.
    pub(crate) fn set_aside(&self, instance: &str, messages: &[Waiting]) {
        let mut state = self.state();
        if let Some(turns) = state.turns.get_mut(instance) {
            for message in messages {
                turns.messages.remove(&message.item.id);
            }
        }
        state.place(instance);
    }

    /// Records a new end of the lease or the rest of an instance.
    pub(crate) fn locked(&self, instance: &str, until: u64) {
        if let Some(turns) = self.state().turns.get_mut(instance) {
            turns.until = until;
            turns.is_held = false;
            turns.version += 1;
        }
        self.wake();
    }

    /// Records a committed turn: its messages are consumed, and the instance is free.
    pub(crate) fn consumed(&self, instance: &str, ids: &[String], until: u64) {
        {
            let mut state = self.state();
            if let Some(turns) = state.turns.get_mut(instance) {
                turns.until = until;
                turns.version += 1;
                let gone: Vec<u64> = ids
                    .iter()
                    .filter_map(|id| turns.messages.remove(id))
                    .map(|message| message.place.1)
                    .collect();
                gone.into_iter().for_each(|sequence| state.consumed.insert(instance, sequence));
            }
            state.place(instance);
        }
        self.wake();
    }

    /// Records messages that were given back with a delay.
    pub(crate) fn delayed(&self, instance: &str, ids: &[String], until: u64) {
        let mut state = self.state();
        state.generation += 1;
        let generation = state.generation;
        if let Some(turns) = state.turns.get_mut(instance) {
            for id in ids {
                if let Some(message) = turns.messages.get_mut(id) {
                    (message.place.0, message.inserted) = (until, generation);
                }
            }
        }
        state.place(instance);
    }

    /// Removes a deleted instance.
    pub(crate) fn forget(&self, instance: &str) {
        let mut state = self.state();
        if let Some(turns) = state.turns.remove(instance)
            && let Some(first) = turns.first
        {
            state.line.remove(&(first, instance.to_string()));
        }
        state.activities.retain(|(_, owner, _), _| owner != instance);
    }
}

impl Turns {
    /// Makes the next fetch read an instance again that was held.
    fn look_again(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.until = 0;
        }
    }
}

impl State {
    fn turns_of(&mut self, instance: &str) -> &mut Turns {
        let is_offered = self.adopted.contains(instance);
        let of = || Turns { slot: slot_of(instance), is_offered, ..Turns::default() };
        self.turns.entry(instance.to_string()).or_insert_with(of)
    }

    fn insert(&mut self, instance: &str, id: &str, place: Place) {
        self.generation += 1;
        let generation = self.generation;
        let turns = self.turns_of(instance);
        let message = Message { place, inserted: generation, hinted_at: None };
        let before = turns.messages.insert(id.to_string(), message);
        if before.is_none() {
            turns.look_again();
        }
        if before.is_none_or(|before| before.place != place) {
            turns.version += 1;
        }
        self.place(instance);
    }

    /// Updates the place of an instance in the line.
    fn place(&mut self, instance: &str) {
        let Some(turns) = self.turns.get_mut(instance) else { return };
        let first = turns.messages.values().map(|message| message.place).min();
        let before = std::mem::replace(&mut turns.first, first);
        let is_idle = first.is_none() && !turns.is_busy;
        if before != first {
            if let Some(before) = before {
                self.line.remove(&(before, instance.to_string()));
            }
            if let Some(first) = first {
                self.line.insert((first, instance.to_string()));
            }
        }
        if is_idle {
            self.turns.remove(instance);
        }
    }
}
