//! What callers were told, to be held against what is stored.

use outlast_model::{Event, WorkItem};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a caller knows about a call of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It was made; nobody knows how it ended.
    Asked,
    /// The caller was told that it is stored.
    Acknowledged,
}

/// What was asked and acknowledged for one instance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    /// Its start and messages.
    pub(crate) sent: Vec<(WorkItem, Claim)>,
    /// Events of acknowledged turns.
    pub(crate) history: Vec<Event>,
    /// How long the history was after each acknowledged turn.
    pub(crate) turns: Vec<usize>,
    /// Events of turns whose answer is not known, in their order. There can be two: a store may hand out the next turn before
    /// whoever committed the last one has been told.
    pub(crate) proposed: Vec<Vec<Event>>,
    /// Activities whose outcome was handed in, by id.
    pub(crate) work: BTreeMap<u64, Claim>,
    /// The output that a client was told.
    pub(crate) told: Option<String>,
    /// Whether it was deleted.
    pub(crate) deletion: Option<Claim>,
}

/// Of all instances.
#[derive(Default)]
pub(crate) struct Ledger {
    stories: Mutex<BTreeMap<String, Story>>,
    /// Acknowledgements so far.
    heard: AtomicU64,
}

impl Ledger {
    pub(crate) fn stories(&self) -> MutexGuard<'_, BTreeMap<String, Story>> {
        self.stories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn story<T>(&self, instance: &str, note: impl FnOnce(&mut Story) -> T) -> T {
        note(self.stories().entry(instance.to_string()).or_default())
    }

    pub(crate) fn sends(&self, item: &WorkItem) {
        self.story(item.target_instance(), |story| {
            if story.claim(item).is_none() {
                story.sent.push((item.clone(), Claim::Asked));
            }
        });
    }

    pub(crate) fn sent(&self, item: &WorkItem) {
        self.story(item.target_instance(), |story| {
            if let Some(claim) = story.claim(item) {
                *claim = Claim::Acknowledged;
                self.hear();
            }
        });
    }

    pub(crate) fn commits(&self, delta: &[Event]) {
        if let Some(first) = delta.first() {
            self.story(&first.instance_id, |story| {
                // One that is made again takes the place of its first try.
                story.proposed.retain(|proposed| first_id(proposed) < first.event_id);
                story.proposed.push(delta.to_vec());
            });
        }
    }

    pub(crate) fn committed(&self, delta: &[Event]) {
        if let Some(first) = delta.first() {
            self.story(&first.instance_id, |story| {
                // The store has whatever came before it, too.
                let known =
                    story.proposed.iter().take_while(|proposed| first_id(proposed) <= first.event_id).count();
                for mut turn in story.proposed.drain(..known) {
                    story.history.append(&mut turn);
                    story.turns.push(story.history.len());
                    self.hear();
                }
            });
        }
    }

    pub(crate) fn completes(&self, completion: Option<&WorkItem>, claim: Claim) {
        if let Some(WorkItem::ActivityCompleted { instance, id, .. }) = completion {
            self.story(instance, |story| story.work.insert(*id, claim));
            if claim == Claim::Acknowledged {
                self.hear();
            }
        }
    }

    pub(crate) fn told(&self, instance: &str, output: String) {
        self.story(instance, |story| story.told = Some(output));
        self.hear();
    }

    pub(crate) fn deletes(&self, instance: &str, claim: Claim) {
        self.story(instance, |story| story.deletion = Some(claim));
        if claim == Claim::Acknowledged {
            self.hear();
        }
    }

    fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls were acknowledged.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// How much must be found stored now.
    pub(crate) fn standing(&self) -> u64 {
        self.stories().values().map(Story::standing).sum()
    }
}

fn first_id(turn: &[Event]) -> u64 {
    turn.first().map_or(0, |event| event.event_id)
}

impl Story {
    fn standing(&self) -> u64 {
        if self.deletion == Some(Claim::Acknowledged) {
            return 1;
        }
        let claims = self.sent.iter().map(|(_, claim)| claim).chain(self.work.values());
        let acknowledged = claims.filter(|claim| **claim == Claim::Acknowledged).count();
        (acknowledged + self.turns.len() + usize::from(self.told.is_some())) as u64
    }

    fn claim(&mut self, item: &WorkItem) -> Option<&mut Claim> {
        self.sent.iter_mut().find(|(sent, _)| sent == item).map(|(_, claim)| claim)
    }
}
