//! Counters that the programs update for the measurement. A client that waits for every result would be load that is not
//! part of the scenario.

use super::backend::instance;
use duroxide::{Client, OrchestrationStatus};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The time without an end after which instances are taken to have failed.
const STALLED: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    all_ended: Notify,
}

#[derive(Default)]
struct State {
    expected: usize,
    /// The instances in the order in which they ended, each once: a turn that could not be committed runs again.
    order: Vec<usize>,
    known: HashSet<usize>,
    steps: Vec<Instant>,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before the first instance of a backlog is started.
    pub(super) fn expect(&self, count: usize) {
        *self.state() = State { expected: count, ..State::default() };
    }

    /// An activity of a chain or of a fan-out runs.
    pub(super) fn step(&self) {
        self.state().steps.push(Instant::now());
    }

    /// An orchestration is about to return, or to sleep. An instance whose input is not a number is the warm-up.
    pub(super) fn reached(&self, number: &str) {
        let Ok(number) = number.parse() else { return };
        let mut state = self.state();
        if state.known.insert(number) {
            state.order.push(number);
            if state.order.len() == state.expected {
                self.all_ended.notify_one();
            }
        }
    }

    fn ended(&self) -> usize {
        self.state().order.len()
    }

    pub(super) fn knows(&self, number: usize) -> bool {
        self.state().known.contains(&number)
    }

    /// When the activities ran.
    pub(super) fn steps(&self) -> Vec<Instant> {
        self.state().steps.clone()
    }

    /// Waits until all instances have ended and the store has the ends of the last ones; returns the time since `begun`.
    ///
    /// Gives up after `limit`. An instance that failed before its end delays the result by its own time only.
    pub(super) async fn drained(
        &self,
        client: &Client,
        begun: Instant,
        limit: Duration,
        tail: usize,
    ) -> Duration {
        let (mut seen, mut moved) = (self.ended(), Instant::now());
        while tokio::time::timeout(Duration::from_millis(100), self.all_ended.notified()).await.is_err() {
            if self.ended() != seen {
                (seen, moved) = (self.ended(), Instant::now());
            } else if moved.elapsed() > STALLED && self.others_failed(client).await {
                // If no instance ended, the time at which the work stopped is unknown.
                return if seen == 0 { begun.elapsed() } else { moved - begun };
            }
            if begun.elapsed() > limit {
                return begun.elapsed();
            }
        }
        let last: Vec<usize> = self.state().order.iter().rev().take(tail).copied().collect();
        // All reads run at once: one after the other, they would take longer than the remaining instances.
        let mut questions = JoinSet::new();
        for number in last {
            let client = client.clone();
            questions.spawn(async move {
                while !is_over(&client, number).await && begun.elapsed() < limit {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
        while questions.join_next().await.is_some() {}
        begun.elapsed()
    }

    async fn others_failed(&self, client: &Client) -> bool {
        let missing: Vec<usize> = {
            let state = self.state();
            (0..state.expected).filter(|number| !state.known.contains(number)).collect()
        };
        for number in missing {
            if !is_over(client, number).await {
                return false;
            }
        }
        true
    }
}

pub(super) async fn is_over(client: &Client, number: usize) -> bool {
    let status = client.get_orchestration_status(&instance(number)).await;
    matches!(status, Ok(OrchestrationStatus::Completed { .. } | OrchestrationStatus::Failed { .. }))
}
