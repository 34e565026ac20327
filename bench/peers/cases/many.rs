//! Many orchestrations of a few activities each, at once.

use super::backend::{Backend, sum};
use crate::measure::{Args, Outcome, Tally};

pub(super) async fn run(
    backend: &Backend,
    args: &Args,
    orchestration: &'static str,
) -> Result<Outcome, String> {
    let (count, steps) = (args.number("--count", 200)?, args.number("--steps", 10)?);
    let mut outcome = Outcome::new(backend.durability, count);
    let tally = Tally::begin((backend.counts)());
    let time = backend.backlog(orchestration, count).await;
    tally.end((backend.counts)(), &mut outcome, count, "per orchestration");
    backend.census(&mut outcome, |_| sum(steps)).await;
    let activities = (outcome.completed * steps) as f64;
    outcome.figure("throughput", activities / time.as_secs_f64(), "activities/s");
    Ok(outcome)
}
