//! What a lane takes on.

use crate::batch::Batch;
use crate::handover::Handover;
use crate::waiting::{Ask, TurnAsk, Waiter, WorkAsk};

/// Requests, and the fetches that are served with them.
pub(crate) struct Job {
    pub(crate) batch: Batch,
    pub(crate) turns: Vec<Vec<Waiter<TurnAsk>>>,
    pub(crate) work: Vec<Vec<Waiter<WorkAsk>>>,
    /// Those who have looked in vain, and are given what the batch brings.
    pub(crate) handed_turns: Handover<TurnAsk>,
    pub(crate) handed_work: Handover<WorkAsk>,
    /// Whether turns and activities can be fetched when this is done that could not before.
    pub(crate) frees: (bool, bool),
    /// The counts of news when the fetches were taken.
    pub(crate) turns_news: u64,
    pub(crate) work_news: u64,
    /// What others are told of this, should they wait for it.
    pub(crate) others: Others,
    /// Whether fetches that find nothing ask when to look again. It costs as much as the look.
    pub(crate) asks_next: bool,
    /// How many have asked for this.
    pub(crate) load: usize,
}

impl Job {
    pub(crate) fn without_fetches(batch: Batch, others: Others) -> Self {
        Self {
            frees: (batch.frees_turns(0), batch.frees_work(0)),
            batch,
            handed_turns: Handover::default(),
            handed_work: Handover::default(),
            turns: Vec::new(),
            work: Vec::new(),
            turns_news: 0,
            work_news: 0,
            others,
            asks_next: false,
            load: 0,
        }
    }

    /// How long the leases last that it asks for.
    pub(crate) fn asks_for_ms(&self) -> impl Iterator<Item = u64> + '_ {
        let turns =
            self.turns.iter().flatten().chain(&self.handed_turns.waiters).map(|waiter| waiter.ask.lock_ms());
        let work =
            self.work.iter().flatten().chain(&self.handed_work.waiters).map(|waiter| waiter.ask.lock_ms());
        turns.chain(work)
    }
}

/// What other processes wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Others {
    pub(crate) turns: bool,
    pub(crate) work: bool,
    pub(crate) watches: bool,
}
