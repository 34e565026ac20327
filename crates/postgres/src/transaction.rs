//! What a lane takes on.

use crate::batch::Batch;
use crate::hand_off::HandOffs;
use crate::waiting::{ActivityAsk, Ask, TurnAsk, Waiter};

/// Requests, and the fetches that are served with them.
pub(crate) struct Transaction {
    pub(crate) batch: Batch,
    pub(crate) turns: Vec<Vec<Waiter<TurnAsk>>>,
    pub(crate) activities: Vec<Vec<Waiter<ActivityAsk>>>,
    /// Those who have looked in vain, and are given what the batch brings.
    pub(crate) handed_turns: HandOffs<TurnAsk>,
    pub(crate) handed_activities: HandOffs<ActivityAsk>,
    /// Whether turns and activities can be fetched when this is done that could not before.
    pub(crate) frees: (bool, bool),
    /// The counts of news when the fetches were taken.
    pub(crate) turns_news: u64,
    pub(crate) activities_news: u64,
    /// What others are told of this, should they wait for it.
    pub(crate) others: Others,
    /// Whether fetches that find nothing ask when to look again. It costs as much as the look.
    pub(crate) asks_next: bool,
    /// How many have asked for this.
    pub(crate) load: usize,
}

impl Transaction {
    pub(crate) fn without_fetches(batch: Batch, others: Others) -> Self {
        Self {
            frees: (batch.frees_turns(0), batch.frees_activities(0)),
            batch,
            handed_turns: HandOffs::default(),
            handed_activities: HandOffs::default(),
            turns: Vec::new(),
            activities: Vec::new(),
            turns_news: 0,
            activities_news: 0,
            others,
            asks_next: false,
            load: 0,
        }
    }

    /// How long the leases last that it asks for.
    pub(crate) fn asks_for_ms(&self) -> impl Iterator<Item = u64> + '_ {
        let turns =
            self.turns.iter().flatten().chain(&self.handed_turns.waiters).map(|waiter| waiter.ask.lock_ms());
        let activities = self
            .activities
            .iter()
            .flatten()
            .chain(&self.handed_activities.waiters)
            .map(|waiter| waiter.ask.lock_ms());
        turns.chain(activities)
    }
}

/// What other processes wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Others {
    pub(crate) turns: bool,
    pub(crate) activities: bool,
    pub(crate) watches: bool,
}
