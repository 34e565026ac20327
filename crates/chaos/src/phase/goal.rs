//! Decides when the main phase ends.

use crate::args::Run;
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

#[cfg(test)]
mod tests {
    use super::*;

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
