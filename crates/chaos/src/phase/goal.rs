//! Decides when the main phase ends, and on how many stores it runs.

use crate::args::Run;
use std::num::NonZeroU64;
use std::time::Duration;

/// The targets, and the time limit.
#[derive(Debug)]
pub(super) struct Goal {
    pub(super) kills: u64,
    pub(super) instances: u64,
    limit: Option<Duration>,
}

impl Goal {
    pub(super) fn of(run: &Run) -> Self {
        let has_targets = run.kills.is_some() || run.instances.is_some();
        let minutes = run.minutes.or((!has_targets).then_some(1.0));
        Self {
            kills: run.kills.unwrap_or(0),
            instances: run.instances.unwrap_or(0),
            limit: minutes.map(|minutes| Duration::from_secs_f64(minutes.max(0.0) * 60.0)),
        }
    }

    pub(super) fn is_reached(&self, kills: u64, instances: u64) -> bool {
        kills >= self.kills && instances >= self.instances
    }

    pub(super) fn is_over(&self, elapsed: Duration, kills: u64, instances: u64) -> bool {
        let has_targets = self.kills + self.instances > 0;
        self.limit.is_some_and(|limit| elapsed >= limit) || (has_targets && self.is_reached(kills, instances))
    }
}

/// The shares of a run, each on a store of its own and with jobs of its own.
pub(super) fn shares(run: &Run) -> Vec<Run> {
    let most = run.kills_per_store.map_or(run.store.kills_per_store(), NonZeroU64::get);
    let stores = run.kills.unwrap_or(0).div_ceil(most).max(1);
    let share = |index| {
        // The shares of a target add up to it.
        let of = |target| target * (index + 1) / stores - target * index / stores;
        let mut share = run.clone();
        (share.kills, share.instances) = (run.kills.map(of), run.instances.map(of));
        share.seed = run.seed.wrapping_add(index);
        share
    };
    (0..stores).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser;

    fn shares_of(line: &str) -> Vec<(Option<u64>, Option<u64>, u64)> {
        let args = Args::parse_from(format!("chaos supervise {line}").split(' '));
        let Command::Supervise(run) = args.command else { panic!("a run") };
        shares(&run).into_iter().map(|share| (share.kills, share.instances, share.seed)).collect()
    }

    #[test]
    fn kills_are_divided_among_stores() {
        assert_eq!(shares_of("cosmos --kills 100 --seed 7"), [(Some(100), None, 7)]);
        assert_eq!(shares_of("cosmos --kills 500"), [1, 2, 3, 4, 5].map(|seed| (Some(100), None, seed)));
        let divided = [(Some(67), Some(3), 1), (Some(67), Some(3), 2), (Some(67), Some(4), 3)];
        assert_eq!(shares_of("cosmos --kills 201 --instances 10"), divided);
        let two = [(Some(4), None, 1), (Some(5), None, 2)];
        assert_eq!(shares_of("sqlite --kills 9 --kills-per-store 5"), two);
        assert_eq!(shares_of("sqlite --kills 2000"), [(Some(2_000), None, 1)]);
        assert_eq!(shares_of("cosmos --kills 0 --instances 9"), [(Some(0), Some(9), 1)]);
        assert_eq!(shares_of("cosmos --minutes 1"), [(None, None, 1)]);
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_targets_the_time_limit_ends_the_phase() {
        let goal = Goal { kills: 0, instances: 0, limit: Some(60 * SECOND) };
        assert!(!goal.is_over(59 * SECOND, 1_000, 1_000) && goal.is_over(60 * SECOND, 0, 0));
    }

    #[test]
    fn reaching_all_targets_or_the_limit_ends_the_phase() {
        let goal = Goal { kills: 30, instances: 100, limit: Some(60 * SECOND) };
        assert!(!goal.is_over(SECOND, 30, 99) && !goal.is_over(SECOND, 29, 100));
        assert!(goal.is_over(SECOND, 30, 100) && goal.is_reached(30, 100));
        assert!(goal.is_over(60 * SECOND, 0, 0) && !goal.is_reached(0, 0));
        let unlimited = Goal { limit: None, ..goal };
        assert!(!unlimited.is_over(9_999 * SECOND, 29, 100));
    }
}
