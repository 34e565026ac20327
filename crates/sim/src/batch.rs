//! Runs many worlds on all cores.

use crate::bug::Bug;
use crate::tally::Tally;
use crate::world::{Outcome, Settings, run};
use outlast_testing::parallel;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The results of many worlds.
#[derive(Debug, Default)]
pub struct Summary {
    /// Number of worlds that ran.
    pub seeds: usize,
    /// Number of worlds in which a lease was lost or a commit was in doubt. Only these worlds count towards the goal of a run.
    pub counted: usize,
    /// Number of worlds that ran twice to compare their traces.
    pub repeated: usize,
    /// Worlds that broke an invariant.
    pub failed: Vec<Outcome>,
    /// Calls and faults of all worlds.
    pub tally: Tally,
}

/// Every seed that is a multiple of this runs twice.
const REPEAT_EVERY: u64 = 100;

/// Runs the worlds of these seeds. The result does not depend on the number of threads.
pub fn run_many(seeds: &[u64], settings: &Settings) -> Summary {
    let next = AtomicUsize::new(0);
    run_while(|| seeds.get(next.fetch_add(1, Relaxed)).copied(), settings)
}

/// Runs worlds until `next` returns no seed.
pub fn run_while(next: impl Fn() -> Option<u64> + Sync, settings: &Settings) -> Summary {
    let summary = Mutex::new(Summary::default());
    parallel::for_each(next, |seed| {
        let outcome = run_checked(seed, settings);
        summary.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
    });
    let mut summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.failed.sort_by_key(|outcome| outcome.seed);
    summary
}

/// Runs a world. Some worlds run twice, and their traces must be equal.
fn run_checked(seed: u64, settings: &Settings) -> Outcome {
    let mut outcome = run(seed, settings);
    if seed.is_multiple_of(REPEAT_EVERY) && outcome.digest != run(seed, settings).digest {
        outcome
            .failures
            .push("two runs of this seed have different traces: something is not deterministic".into());
    }
    outcome
}

/// The outcome of the first of these worlds that fails.
pub fn first_failure(seeds: impl IntoIterator<Item = u64>, settings: &Settings) -> Option<Outcome> {
    seeds.into_iter().map(|seed| run(seed, settings)).find(|outcome| !outcome.failures.is_empty())
}

/// For each defect, the outcome of the first world that fails with it.
pub fn first_failures(bugs: &[Bug], seeds: &[u64]) -> Vec<Option<Outcome>> {
    parallel::map(bugs, |bug| {
        let settings = Settings { bug: Some(*bug), ..Settings::default() };
        first_failure(seeds.iter().copied(), &settings)
    })
}

impl Summary {
    fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.counted += usize::from(outcome.tally.is_counted());
        self.repeated += usize::from(outcome.seed.is_multiple_of(REPEAT_EVERY));
        self.tally.add(&outcome.tally);
        if !outcome.failures.is_empty() {
            self.failed.push(outcome);
        }
    }
}
