//! Many orchestrations that wait for a timer: their cost while they wait, and their effect on other instances.

use super::backend::Backend;
use super::hello::{Run, one_by_one};
use crate::measure::{Args, Outcome, ms, percentile, usage};
use std::time::{Duration, Instant};

const MB: f64 = 1e6;
const PAUSE_MS: u64 = 5;

pub(super) async fn run(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (count, samples) = (args.number("--count", 2_000)?, args.number("--samples", 40)?);
    let idle = Duration::from_secs(args.number("--seconds", 5)?);
    let mut outcome = Outcome::new(backend.durability, count + 2 * samples);

    let alone = one_by_one(backend, count..count + samples, PAUSE_MS).await;
    let before = usage::memory() as f64;
    outcome.completed += backend.sleepers(count).await;
    let grown = usage::memory() as f64 - before;

    let (used, begun) = (usage::used(), Instant::now());
    tokio::time::sleep(idle).await;
    let share = (usage::used() - used).as_secs_f64() / begun.elapsed().as_secs_f64();
    let beside = one_by_one(backend, count + samples..count + 2 * samples, PAUSE_MS).await;

    alone.iter().chain(&beside).for_each(|run| run.count(&mut outcome));
    outcome.figure("memory", grown / MB, "MB");
    outcome.figure("memory_each", grown / count as f64, "B");
    if let Some(bound) = backend.cache_bound {
        outcome.figure("memory_above_bound", (grown - bound as f64) / MB, "MB");
    }
    outcome.figure("idle_cpu", share * 100.0, "% of a core");
    outcome.figure("p50_alone", median(&alone), "ms");
    outcome.figure("p50", median(&beside), "ms");
    Ok(outcome)
}

fn median(runs: &[Run]) -> f64 {
    let times: Vec<f64> = runs.iter().map(|run| ms(run.time)).collect();
    percentile(&times, 50)
}
