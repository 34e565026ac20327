//! Messages between instances. A turn of the source stores an intent; the intent is delivered to the target's partition, by the
//! committer and by any number of reconcilers, and removed after a delivery.
//!
//! | may happen at any time | as |
//! |---|---|
//! | a delivery is sent by any process, also twice | `Send` |
//! | a delivery arrives late, after its message was consumed | `Arrive`: nothing orders it |
//! | it or its answer is lost | `Lose`, `is_answered: false` |
//! | the source is deleted and created again under its id | `Recreate` |
//! | the tombstone of a consumed message expires | `Expire`: not before the intent and all deliveries are gone |

use super::search::{CAN_END, Protocol};
use crate::doubt::{Answer, Refusal, Verdict};
use crate::ids::{MessageKey, SentKey, Uid};
use stateright::{Model, Property};
use std::collections::{BTreeMap, BTreeSet};

/// The known bugs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// The key of a message has no rev, so that the first messages of two turns have the same key.
    KeyWithoutRev,
    /// The key of a message has no uid, so that a re-created source repeats keys.
    KeyWithoutUid,
    /// A consumed message is deleted.
    ConsumedDeleted,
    /// A delivery that finds its message stored has failed.
    ConflictIsFailure,
    /// The intent is removed when its delivery is sent.
    RemovedBeforeAnswer,
    /// A tombstone expires although its intent is there, because no process served the intent for so long.
    TombstoneExpiresEarly,
}

const TWICE: &str = "no message is recorded twice";
const LOST: &str = "no message is lost";

/// The turns of the source, each with one message, and the incarnations of the source.
const TURNS: u64 = 2;
const LIVES: u8 = 2;
/// Deliveries of one message that are in flight at one time.
const DELIVERIES: usize = 2;

#[derive(Clone)]
pub(super) struct Outbox {
    bug: Option<Bug>,
}

/// A message, by the life of the source and the rev of the turn that sends it.
type Sent = (u8, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stored {
    Message(Sent),
    Tombstone,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    life: u8,
    rev: u64,
    intents: BTreeSet<Sent>,
    /// Deliveries in flight.
    sent: Vec<Sent>,
    committed: BTreeSet<Sent>,
    target: BTreeMap<String, Stored>,
    recorded: BTreeMap<Sent, u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A turn of the source commits a message.
    Turn,
    /// The source is deleted, its messages delivered before, and created again.
    Recreate,
    Send(Sent),
    Arrive {
        nth: usize,
        is_answered: bool,
    },
    /// A delivery never arrives.
    Lose(usize),
    /// A turn of the target takes a message.
    Consume(String),
    Expire(String),
}

impl Model for Outbox {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            life: 0,
            rev: 0,
            intents: BTreeSet::new(),
            sent: vec![],
            committed: BTreeSet::new(),
            target: BTreeMap::new(),
            recorded: BTreeMap::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend((state.rev < TURNS).then_some(Action::Turn));
        let may_end = state.intents.is_empty() && state.rev > 0 && state.life + 1 < LIVES;
        actions.extend(may_end.then_some(Action::Recreate));
        let is_sent = |sent: &Sent| state.sent.iter().filter(|other| *other == sent).count() == DELIVERIES;
        actions.extend(state.intents.iter().filter(|sent| !is_sent(sent)).map(|sent| Action::Send(*sent)));
        for nth in 0..state.sent.len() {
            actions.push(Action::Lose(nth));
            actions.extend([true, false].map(|is_answered| Action::Arrive { nth, is_answered }));
        }
        for (key, stored) in &state.target {
            match stored {
                Stored::Message(_) => actions.push(Action::Consume(key.clone())),
                Stored::Tombstone => actions.push(Action::Expire(key.clone())),
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Turn => {
                state.rev += 1;
                state.intents.insert((state.life, state.rev));
                state.committed.insert((state.life, state.rev));
            }
            Action::Recreate => (state.life, state.rev) = (state.life + 1, 0),
            Action::Send(sent) => {
                state.sent.push(sent);
                state.sent.sort_unstable();
                if self.has(Bug::RemovedBeforeAnswer) {
                    state.intents.remove(&sent);
                }
            }
            Action::Arrive { nth, is_answered } => self.arrive(&mut state, nth, is_answered),
            Action::Lose(nth) => {
                state.sent.remove(nth);
            }
            Action::Consume(key) => {
                let Some(Stored::Message(sent)) = state.target.remove(&key) else { return None };
                let count = state.recorded.entry(sent).or_default();
                *count = (*count + 1).min(2);
                if !self.has(Bug::ConsumedDeleted) {
                    state.target.insert(key, Stored::Tombstone);
                }
            }
            Action::Expire(key) => {
                let needs = |sent: &Sent| self.key(*sent) == key;
                let is_needed = state.sent.iter().any(needs) || state.intents.iter().any(needs);
                if is_needed && !self.has(Bug::TombstoneExpiresEarly) {
                    return None;
                }
                state.target.remove(&key);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TWICE, |_, state: &State| state.recorded.values().all(|count| *count < 2)),
            Property::always(LOST, |_, state: &State| {
                let is_stored =
                    |sent: &Sent| state.target.values().any(|stored| *stored == Stored::Message(*sent));
                let is_kept = |sent: &Sent| {
                    state.intents.contains(sent)
                        || state.sent.contains(sent)
                        || is_stored(sent)
                        || state.recorded.contains_key(sent)
                };
                state.committed.iter().all(is_kept)
            }),
            Property::sometimes("all messages of two lives are recorded", |model: &Self, state: &State| {
                model.is_over(state) && state.life + 1 == LIVES
            }),
            Property::sometimes("a delivery arrives after its message was consumed", |_, state: &State| {
                state.sent.iter().any(|sent| state.recorded.contains_key(sent))
            }),
            Property::sometimes("two deliveries of one message are on their way", |_, state: &State| {
                state.sent.windows(2).any(|pair| pair[0] == pair[1])
            }),
        ]
    }
}

impl Protocol for Outbox {
    type Bug = Bug;

    const BUGS: &'static [(Bug, &'static [&'static str])] = &[
        (Bug::KeyWithoutRev, &[LOST]),
        (Bug::KeyWithoutUid, &[LOST]),
        (Bug::ConsumedDeleted, &[TWICE]),
        (Bug::ConflictIsFailure, &[CAN_END]),
        (Bug::RemovedBeforeAnswer, &[LOST]),
        (Bug::TombstoneExpiresEarly, &[TWICE]),
    ];

    fn models(bug: Option<Bug>) -> Vec<Self> {
        vec![Self { bug }]
    }

    fn is_over(&self, state: &State) -> bool {
        let is_recorded = |sent: &Sent| state.recorded.contains_key(sent);
        state.rev == TURNS && state.committed.iter().all(is_recorded) && state.intents.is_empty()
    }

    fn helps(&self, action: &Action) -> bool {
        !matches!(action, Action::Arrive { is_answered: false, .. } | Action::Lose(_))
    }
}

impl Outbox {
    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn key(&self, (life, rev): Sent) -> String {
        let source = Uid(if self.has(Bug::KeyWithoutUid) { 0 } else { life.into() });
        let rev = if self.has(Bug::KeyWithoutRev) { 0 } else { rev };
        MessageKey::Sent(SentKey { source, rev, nth: 0 }).to_string()
    }

    /// A delivery arrives at the partition of the target: it creates the message. If the answer arrives, the sender removes the
    /// intent of a stored message.
    fn arrive(&self, state: &mut State, nth: usize, is_answered: bool) {
        let sent = state.sent.remove(nth);
        let key = self.key(sent);
        let status = if state.target.contains_key(&key) { 409 } else { 201 };
        state.target.entry(key).or_insert(Stored::Message(sent));
        if !is_answered {
            return;
        }
        let is_stored = match (Answer { status: Some(status), sent: 1 }).verdict() {
            Verdict::Applied => true,
            // The key belongs to this message alone.
            Verdict::Refused(Refusal::Exists) => !self.has(Bug::ConflictIsFailure),
            Verdict::Refused(_) | Verdict::InDoubt => false,
        };
        if is_stored {
            state.intents.remove(&sent);
        }
    }
}
