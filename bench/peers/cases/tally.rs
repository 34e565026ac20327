//! What a scenario took from the store, counted and not timed.

use super::usage;
use super::world::World;
use crate::measure::Outcome;

pub(super) struct Tally {
    counts: Vec<(&'static str, u64)>,
}

impl Tally {
    pub(super) fn begin(world: &World) -> Self {
        Self { counts: counts(world) }
    }

    /// Each of the figures, divided by this many.
    pub(super) fn end(self, world: &World, outcome: &mut Outcome, among: usize, unit: &str) {
        for ((metric, before), (_, after)) in self.counts.into_iter().zip(counts(world)) {
            outcome.figure(metric, (after - before) as f64 / among as f64, unit);
        }
    }
}

fn counts(world: &World) -> Vec<(&'static str, u64)> {
    let mut counts = (world.counts)();
    counts.push(("bytes_written", usage::bytes_written()));
    counts
}
