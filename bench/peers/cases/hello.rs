//! Orchestrations of one activity.

use super::backend::{Backend, greeting, instance, start, wait};
use crate::measure::{Args, Outcome, Tally, ms, percentile};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const PER_SECOND: &str = "orchestrations/s";

/// A few clients start all instances as fast as they can.
pub(super) async fn backlog(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    drain(backend, args, "throughput").await
}

/// The backlog again, with the number of dispatchers in the name of the figure: one point of a curve.
pub(super) async fn sweep(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    drain(backend, args, &format!("throughput_at_{}", backend.dispatchers)).await
}

async fn drain(backend: &Backend, args: &Args, metric: &str) -> Result<Outcome, String> {
    let count = args.number("--count", 400)?;
    let mut outcome = Outcome::new(backend.durability, count);
    let tally = Tally::begin((backend.counts)());
    let time = backend.backlog("Hello", count).await;
    tally.end((backend.counts)(), &mut outcome, count, "per orchestration");
    backend.census(&mut outcome, greeting).await;
    outcome.figure(metric, outcome.completed as f64 / time.as_secs_f64(), PER_SECOND);
    Ok(outcome)
}

/// Each client starts its next instance when it has read the end of its last one.
pub(super) async fn closed(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (count, in_flight) = (args.number("--count", 400)?, args.number("--in-flight", 16)?);
    let time = Duration::from_secs(args.number("--seconds", 10)?);
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..in_flight {
        let (client, next, limit) = (backend.client.clone(), Arc::clone(&next), backend.limit);
        clients.spawn(async move {
            let mut runs = Vec::new();
            while begun.elapsed() < time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let started = Instant::now();
                start(&client, &instance(number), "Hello", &number.to_string()).await;
                let output = wait(&client, &instance(number), limit).await;
                runs.push(Run { number, output, time: started.elapsed() });
            }
            runs
        });
    }
    let mut runs = Vec::new();
    while let Some(of_one) = clients.join_next().await {
        runs.extend(of_one.map_err(|error| error.to_string())?);
    }
    let time = begun.elapsed();
    let mut outcome = report(backend, &runs);
    outcome.figure("throughput", outcome.completed as f64 / time.as_secs_f64(), PER_SECOND);
    Ok(outcome)
}

pub(super) async fn idle(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let count = args.number("--count", 50)?;
    let tally = Tally::begin((backend.counts)());
    let runs = one_by_one(backend, 0..count, 20).await;
    let mut outcome = report(backend, &runs);
    tally.end((backend.counts)(), &mut outcome, count, "per orchestration");
    Ok(outcome)
}

/// The output of one orchestration, and its duration as its client measured it.
pub(super) struct Run {
    number: usize,
    output: Option<String>,
    pub(super) time: Duration,
}

impl Run {
    pub(super) fn count(&self, outcome: &mut Outcome) {
        outcome.ended(self.output.as_deref(), &greeting(self.number));
    }
}

/// Runs one instance at a time, with pauses of at least `pause_ms` and of uneven length, so that no poll interval matches them.
pub(super) async fn one_by_one(
    backend: &Backend,
    numbers: std::ops::Range<usize>,
    pause_ms: u64,
) -> Vec<Run> {
    let mut runs = Vec::new();
    for number in numbers {
        let uneven = pause_ms + number as u64 * 37 % (5 * pause_ms);
        tokio::time::sleep(Duration::from_millis(uneven)).await;
        let started = Instant::now();
        start(&backend.client, &instance(number), "Hello", &number.to_string()).await;
        let output = wait(&backend.client, &instance(number), backend.limit).await;
        runs.push(Run { number, output, time: started.elapsed() });
    }
    runs
}

fn report(backend: &Backend, runs: &[Run]) -> Outcome {
    let mut outcome = Outcome::new(backend.durability, runs.len());
    runs.iter().for_each(|run| run.count(&mut outcome));
    let times: Vec<f64> = runs.iter().map(|run| ms(run.time)).collect();
    outcome.figure("p50", percentile(&times, 50), "ms");
    outcome.figure("p99", percentile(&times, 99), "ms");
    outcome
}
