//! Many worlds, some of them at a time.

use super::tally::Tally;
use super::world::{self, Outcome, Settings};
use outlast_testkit::parallel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What many worlds found.
#[derive(Debug, Default)]
pub struct Summary {
    /// Their counts together.
    pub tally: Tally,
    /// Worlds in which acknowledged calls were lost.
    pub lossy: Vec<Outcome>,
    /// Worlds in which something was broken, whatever the settings.
    pub broken: Vec<Outcome>,
}

/// Runs as many worlds, from `first_seed` on, as `cuts` power cuts need.
pub fn run_many(first_seed: u64, cuts: u64, settings: Settings) -> Summary {
    let summary = Mutex::new(Summary::default());
    let next = AtomicU64::new(0);
    let worlds = cuts.div_ceil(settings.cuts.max(1));
    let next_index = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < worlds);
    parallel::for_each(next_index, |index| {
        let outcome = world::run(first_seed + index, settings);
        summary.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Summary {
    fn add(&mut self, outcome: Outcome) {
        self.tally.add(&outcome.tally);
        match (&outcome.broken[..], &outcome.lost[..]) {
            ([], []) => {}
            ([], _) => self.lossy.push(outcome),
            _ => self.broken.push(outcome),
        }
    }
}
