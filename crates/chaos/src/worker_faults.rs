//! Faults of workers: SIGKILL at named points of a commit and at random times, SIGSTOP for longer than a lease. Also
//! faults of the PostgreSQL server.

use crate::store::Server;
use crate::worker::{LEASE, Point};
use crate::worker_pool::WorkerPool;
use outlast_testkit::rng::{DIGEST_START, Rng, digest};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Every eighth fault stops a worker instead of killing it.
const STOP_EVERY: u64 = 8;
/// How long to wait for a worker to start, and then to reach a point.
const TO_START: Duration = Duration::from_secs(3);
const TO_REACH: Duration = Duration::from_millis(1_500);
/// How long to wait for a worker to reach a point, for a kill that must happen in a commit.
const TO_HOLD_IN_COMMIT: Duration = Duration::from_secs(30);

pub(crate) struct WorkerFaults {
    rng: Rng,
    pace_ms: u64,
    injections: u64,
    pub(crate) kills: u64,
    /// Kills of workers that had sent a commit and had no answer.
    pub(crate) in_commit: u64,
    /// Kills by point, with those within a commit.
    pub(crate) kills_by_point: BTreeMap<&'static str, (u64, u64)>,
    pub(crate) stops: u64,
}

impl WorkerFaults {
    pub(crate) fn new(seed: u64, pace_ms: u64) -> Self {
        // Another label would draw other faults from the same seed.
        let rng = Rng::new(seed ^ digest(DIGEST_START, b"nemesis"));
        Self {
            rng,
            pace_ms,
            injections: 0,
            kills: 0,
            in_commit: 0,
            kills_by_point: BTreeMap::new(),
            stops: 0,
        }
    }

    /// Draws the time until the next fault.
    pub(crate) fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.between(self.pace_ms / 2, self.pace_ms * 3 / 2))
    }

    pub(crate) async fn inject(&mut self, pool: &mut WorkerPool) -> Result<(), String> {
        let has_stopped_worker = pool.workers.iter().any(|worker| worker.stopped_until.is_some());
        self.injections += 1;
        if !has_stopped_worker && self.injections.is_multiple_of(STOP_EVERY) {
            self.stop(pool).await
        } else {
            self.kill(pool).await
        }
    }

    /// Injects a fault into the server.
    pub(crate) async fn inject_into_server(&mut self, server: &mut Server) -> Result<(), String> {
        server.inject_fault(&mut self.rng).await
    }

    /// Stops a worker for longer than its leases. Other workers take the leases over, and the worker continues without this
    /// information when it resumes.
    async fn stop(&mut self, pool: &mut WorkerPool) -> Result<(), String> {
        let victim = self.rng.index(pool.workers.len());
        let length = LEASE.mul_f64(self.rng.between(120, 220) as f64 / 100.0);
        pool.workers[victim].stop_until(Instant::now() + length).await?;
        self.stops += 1;
        Ok(())
    }

    /// Resumes workers whose stop is over.
    pub(crate) async fn resume_due(&mut self, pool: &mut WorkerPool) -> Result<(), String> {
        let now = Instant::now();
        for worker in
            pool.workers.iter_mut().filter(|worker| worker.stopped_until.is_some_and(|until| until <= now))
        {
            worker.resume().await?;
        }
        Ok(())
    }

    /// Chooses the point at which to kill a worker, and how long to wait for the worker to start and to reach the
    /// point. While less than half of the kills happened in a commit, the next kill waits for a commit to begin.
    fn choose_point(&mut self) -> (Option<Point>, Duration, Duration) {
        if self.in_commit * 2 < self.kills {
            return (Some(Point::Within), TO_HOLD_IN_COMMIT, TO_HOLD_IN_COMMIT);
        }
        let point = match self.rng.below(10) {
            0..2 => Some(Point::Before),
            2..6 => Some(Point::Within),
            6..8 => Some(Point::After),
            _ => None,
        };
        (point, TO_START, TO_REACH)
    }

    async fn kill(&mut self, pool: &mut WorkerPool) -> Result<(), String> {
        let (wanted, to_begin, to_reach) = self.choose_point();
        let mut victim = self.rng.index(pool.workers.len());
        if to_reach == TO_HOLD_IN_COMMIT && pool.workers[victim].stopped_until.is_some() {
            // At most one worker is stopped, and a stopped worker never reaches a point.
            victim = (victim + 1) % pool.workers.len();
        }
        let worker = &mut pool.workers[victim];
        let mut choose_point = "random";
        if let Some(point) = wanted.filter(|_| worker.stopped_until.is_none())
            && worker.is_ready(to_begin).await
            && worker.pause_at(point, to_reach).await
        {
            choose_point = point.name();
            let delay_ms = self.rng.below(5);
            if point == Point::Within && delay_ms > 0 && to_reach != TO_HOLD_IN_COMMIT {
                sleep(Duration::from_millis(delay_ms)).await;
            }
        }
        let record = pool.kill(victim).await?;
        let in_commit = u64::from(record.sent > 0);
        self.kills += 1;
        self.in_commit += in_commit;
        let counts = self.kills_by_point.entry(choose_point).or_default();
        *counts = (counts.0 + 1, counts.1 + in_commit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_wait_for_a_commit_to_begin_while_too_few_happened_in_commits() {
        let mut faults = WorkerFaults::new(1, 700);
        (faults.kills, faults.in_commit) = (11, 5);
        for _ in 0..50 {
            assert_eq!(faults.choose_point(), (Some(Point::Within), TO_HOLD_IN_COMMIT, TO_HOLD_IN_COMMIT));
        }
        faults.in_commit = 6;
        let aims: Vec<_> = (0..50).map(|_| faults.choose_point()).collect();
        assert!(aims.iter().all(|(_, to_begin, to_reach)| (*to_begin, *to_reach) == (TO_START, TO_REACH)));
        for point in [None, Some(Point::Before), Some(Point::Within), Some(Point::After)] {
            assert!(aims.iter().any(|(choose_point, ..)| *choose_point == point), "{point:?}");
        }
    }
}
