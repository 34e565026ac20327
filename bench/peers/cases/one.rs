//! One large orchestration.

use super::backend::{Backend, sum};
use crate::measure::{Args, Outcome, Tally, ms, steps};
use std::time::Duration;

/// A long chain: the cost of a step, and whether steps cost more at the end than at the beginning.
pub(super) async fn chain(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (mut outcome, time) = run(backend, args, "Chain", "per step").await?;
    if outcome.completed == 0 {
        return Ok(outcome);
    }
    let ran = backend.progress.steps();
    outcome.figure("step", ms(time) / ran.len().max(1) as f64, "ms");
    steps(&mut outcome, &ran);
    Ok(outcome)
}

/// All activities at once. If the instance does not end in time, the figures count the activities that ran; if it fails,
/// there are no figures.
pub(super) async fn fan_out(backend: &Backend, args: &Args) -> Result<Outcome, String> {
    let (mut outcome, time) = run(backend, args, "FanOut", "per activity").await?;
    if outcome.failed > 0 {
        return Ok(outcome);
    }
    let ran = backend.progress.steps().len() as f64;
    outcome.figure("throughput", ran / time.as_secs_f64(), "activities/s");
    outcome.figure("each", ms(time) / ran, "ms");
    outcome.figure("activities", ran, "run");
    Ok(outcome)
}

async fn run(
    backend: &Backend,
    args: &Args,
    orchestration: &'static str,
    unit: &str,
) -> Result<(Outcome, Duration), String> {
    let steps = args.number("--steps", 10)?;
    let mut outcome = Outcome::new(backend.durability, 1);
    let tally = Tally::begin((backend.counts)());
    let time = backend.backlog(orchestration, 1).await;
    tally.end((backend.counts)(), &mut outcome, steps, unit);
    backend.census(&mut outcome, |_| sum(steps)).await;
    Ok((outcome, time))
}
