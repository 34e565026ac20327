//! What is done to workers: SIGKILL at named points of a commit and at random moments, SIGSTOP beyond the lease. And to
//! the server of their store, if it has one.

use crate::fleet::Fleet;
use crate::store::Server;
use crate::worker::{LEASE, Point};
use outlast_testkit::rng::{DIGEST_START, Rng, digest};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Every so many strikes, a worker is stopped instead of killed.
const STOPS: u64 = 8;
/// How long a worker may take to begin, and then to come by a point.
const TO_BEGIN: Duration = Duration::from_secs(3);
const TO_REACH: Duration = Duration::from_millis(1_500);
/// The same for a kill that must land between a commit and its answer.
const AT_LAST: Duration = Duration::from_secs(30);

pub(crate) struct Nemesis {
    rng: Rng,
    pace_ms: u64,
    strikes: u64,
    pub(crate) kills: u64,
    /// Of these, with a commit in the store's hands and its caller without an answer.
    pub(crate) in_commit: u64,
    /// Kills by what was aimed at, with those in a commit.
    pub(crate) by_aim: BTreeMap<&'static str, (u64, u64)>,
    pub(crate) stops: u64,
}

impl Nemesis {
    pub(crate) fn new(seed: u64, pace_ms: u64) -> Self {
        let rng = Rng::new(seed ^ digest(DIGEST_START, b"nemesis"));
        Self { rng, pace_ms, strikes: 0, kills: 0, in_commit: 0, by_aim: BTreeMap::new(), stops: 0 }
    }

    /// How long everybody is left alone.
    pub(crate) fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.between(self.pace_ms / 2, self.pace_ms * 3 / 2))
    }

    pub(crate) async fn strike(&mut self, fleet: &mut Fleet) -> Result<(), String> {
        let somebody_is_stopped = fleet.workers.iter().any(|worker| worker.stopped_until.is_some());
        self.strikes += 1;
        if !somebody_is_stopped && self.strikes.is_multiple_of(STOPS) {
            self.stop(fleet).await
        } else {
            self.kill(fleet).await
        }
    }

    /// Hurts the server, too.
    pub(crate) async fn strike_server(&mut self, server: &mut Server) -> Result<(), String> {
        server.hurt(&mut self.rng).await
    }

    /// Beyond the lease: others take over what it holds, and it does not know when it goes on.
    async fn stop(&mut self, fleet: &mut Fleet) -> Result<(), String> {
        let victim = self.rng.index(fleet.workers.len());
        let length = LEASE.mul_f64(self.rng.between(120, 220) as f64 / 100.0);
        fleet.workers[victim].stop_until(Instant::now() + length).await?;
        self.stops += 1;
        Ok(())
    }

    /// Lets those go on who were stopped for long enough.
    pub(crate) async fn resume_due(&mut self, fleet: &mut Fleet) -> Result<(), String> {
        let now = Instant::now();
        for worker in
            fleet.workers.iter_mut().filter(|worker| worker.stopped_until.is_some_and(|until| until <= now))
        {
            worker.resume().await?;
        }
        Ok(())
    }

    /// The point to kill a worker at, and how long to wait for it to begin and to get there. While less than half of the
    /// kills have landed between a commit and its answer, the next one is held there until it does.
    fn aim(&mut self) -> (Option<Point>, Duration, Duration) {
        if self.in_commit * 2 < self.kills {
            return (Some(Point::After), AT_LAST, AT_LAST);
        }
        let point = match self.rng.below(10) {
            0..2 => Some(Point::Before),
            2..6 => Some(Point::Within),
            6..8 => Some(Point::After),
            _ => None,
        };
        (point, TO_BEGIN, TO_REACH)
    }

    async fn kill(&mut self, fleet: &mut Fleet) -> Result<(), String> {
        let (wanted, to_begin, to_reach) = self.aim();
        let mut victim = self.rng.index(fleet.workers.len());
        if to_reach == AT_LAST && fleet.workers[victim].stopped_until.is_some() {
            // One at most is stopped, and gets nowhere.
            victim = (victim + 1) % fleet.workers.len();
        }
        let worker = &mut fleet.workers[victim];
        let mut aim = "random";
        if let Some(point) = wanted.filter(|_| worker.stopped_until.is_none())
            && worker.is_ready(to_begin).await
            && worker.reaches(point, to_reach).await
        {
            aim = point.name();
            let delay_ms = self.rng.below(5);
            if point == Point::Within && delay_ms > 0 {
                sleep(Duration::from_millis(delay_ms)).await;
            }
        }
        let state = fleet.kill(victim).await?;
        let in_commit = u64::from(state.in_flight > 0);
        self.kills += 1;
        self.in_commit += in_commit;
        let counts = self.by_aim.entry(aim).or_default();
        *counts = (counts.0 + 1, counts.1 + in_commit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_aimed_at_commits_while_too_few_landed_there() {
        let mut nemesis = Nemesis::new(1, 700);
        (nemesis.kills, nemesis.in_commit) = (11, 5);
        for _ in 0..50 {
            assert_eq!(nemesis.aim(), (Some(Point::After), AT_LAST, AT_LAST));
        }
        nemesis.in_commit = 6;
        let aims: Vec<_> = (0..50).map(|_| nemesis.aim()).collect();
        assert!(aims.iter().all(|(_, to_begin, to_reach)| (*to_begin, *to_reach) == (TO_BEGIN, TO_REACH)));
        for point in [None, Some(Point::Before), Some(Point::Within), Some(Point::After)] {
            assert!(aims.iter().any(|(aim, ..)| *aim == point), "{point:?}");
        }
    }
}
