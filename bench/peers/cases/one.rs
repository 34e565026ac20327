//! One large orchestration.

use super::world::{World, sum};
use crate::measure::{Args, Outcome, Tally, ms, steps};
use std::time::Duration;

/// A long chain: the cost of a step, and whether steps cost more at the end than at the beginning.
pub(super) async fn chain(world: &World, args: &Args) -> Result<Outcome, String> {
    let (mut outcome, time) = run(world, args, "Chain", "per step").await?;
    if outcome.completed == 0 {
        return Ok(outcome);
    }
    let ran = world.progress.steps();
    outcome.figure("step", ms(time) / ran.len().max(1) as f64, "ms");
    steps(&mut outcome, &ran);
    Ok(outcome)
}

/// All activities at once. If the instance does not end in time, the figures count the activities that ran; if it fails,
/// there are no figures.
pub(super) async fn fan_out(world: &World, args: &Args) -> Result<Outcome, String> {
    let (mut outcome, time) = run(world, args, "FanOut", "per activity").await?;
    if outcome.failed > 0 {
        return Ok(outcome);
    }
    let ran = world.progress.steps().len() as f64;
    outcome.figure("throughput", ran / time.as_secs_f64(), "activities/s");
    outcome.figure("each", ms(time) / ran, "ms");
    outcome.figure("activities", ran, "run");
    Ok(outcome)
}

async fn run(
    world: &World,
    args: &Args,
    orchestration: &'static str,
    unit: &str,
) -> Result<(Outcome, Duration), String> {
    let steps = args.number("--steps", 10)?;
    let mut outcome = Outcome::new(world.durability, 1);
    let tally = Tally::begin((world.counts)());
    let time = world.backlog(orchestration, 1).await;
    tally.end((world.counts)(), &mut outcome, steps, unit);
    world.census(&mut outcome, |_| sum(steps)).await;
    Ok((outcome, time))
}
