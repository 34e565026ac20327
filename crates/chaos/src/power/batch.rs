//! Runs many seeds on all cores.

use super::cut_counts::CutCounts;
use super::power_run::{self, Outcome, Settings};
use outlast_testing::parallel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The results of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// The sum of all counts.
    pub tally: CutCounts,
    /// Runs that lost acknowledged calls.
    pub lossy: Vec<Outcome>,
    /// Runs with findings that no setting excuses.
    pub broken: Vec<Outcome>,
}

/// Runs as many seeds, from `first_seed` on, as `cuts` power cuts need.
pub fn run_many(first_seed: u64, cuts: u64, settings: Settings) -> Summary {
    let summary = Mutex::new(Summary::default());
    let next = AtomicU64::new(0);
    let runs = cuts.div_ceil(settings.cuts.max(1));
    let next_index = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < runs);
    parallel::for_each(next_index, |index| {
        let outcome = power_run::run(first_seed + index, settings);
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
