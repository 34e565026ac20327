//! Orchestrations of activities that follow each other.

use super::args::Args;
use super::ms;
use super::world::World;
use serde_json::{Value, json};
use std::time::Instant;

/// One long chain: what a step costs, and whether it costs more at the end than at the beginning.
pub(super) async fn one(world: &World, args: &Args) -> Value {
    let drained = world.backlog("Chain", args, 1).await;
    let steps = world.progress.steps();
    let (first, last) = tenths(&steps);
    json!({
        "step_ms": ms(drained.time) / steps.len().max(1) as f64,
        "first_tenth_ms": first,
        "last_tenth_ms": last,
        "growth": last / first,
        "steps": steps.len(),
        "failed": drained.failed,
        "unfinished": drained.unfinished,
    })
}

/// Many short chains at once.
pub(super) async fn many(world: &World, args: &Args) -> Value {
    let drained = world.backlog("Chain", args, args.count).await;
    json!({
        "per_second": (drained.ended * args.steps) as f64 / drained.time.as_secs_f64(),
        "failed": drained.failed,
        "unfinished": drained.unfinished,
    })
}

/// ms per step in the first and in the last tenth of the steps.
fn tenths(steps: &[Instant]) -> (f64, f64) {
    let tenth = steps.len() / 10;
    if tenth == 0 {
        return (f64::NAN, f64::NAN);
    }
    let mean = |from: usize, to: usize| ms(steps[to] - steps[from]) / tenth as f64;
    (mean(0, tenth), mean(steps.len() - 1 - tenth, steps.len() - 1))
}
