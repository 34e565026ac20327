//! The resources that a scenario took from its process and from the store.

use super::{Outcome, rig, server, usage};

pub(crate) type Counts = Vec<(&'static str, u64)>;

pub(crate) struct Tally {
    before: Counts,
}

impl Tally {
    /// Begins a tally, with the counters of the store at this time.
    pub(crate) fn begin(own: Counts) -> Self {
        Self { before: with_the_rest(own) }
    }

    /// Records every figure, divided by `among`.
    pub(crate) fn end(self, own: Counts, outcome: &mut Outcome, among: usize, unit: &str) {
        self.end_as("", own, outcome, among as f64, unit);
    }

    /// The same, with a prefix of the metrics.
    pub(crate) fn end_as(self, prefix: &str, own: Counts, outcome: &mut Outcome, among: f64, unit: &str) {
        for ((metric, before), (_, after)) in self.before.into_iter().zip(with_the_rest(own)) {
            let counted = after.saturating_sub(before) as f64 / among;
            match metric {
                "milli_ru" => outcome.figure(format!("{prefix}ru"), counted / 1e3, unit),
                metric => outcome.figure(format!("{prefix}{metric}"), counted, unit),
            }
        }
    }
}

fn with_the_rest(mut counts: Counts) -> Counts {
    counts.push(("bytes_written", usage::bytes_written()));
    let used = usage::used() + usage::used_by_children(std::process::id());
    counts.push(("client_cpu_us", u64::try_from(used.as_micros()).unwrap_or(u64::MAX)));
    counts.extend(server::counts());
    counts.extend(rig::counts());
    counts
}
