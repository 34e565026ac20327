//! Orchestrations of one activity.

use super::args::Args;
use super::ms;
use super::world::{World, instance, start, wait};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub(super) async fn backlog(world: &World, args: &Args) -> Value {
    let drained = world.backlog("Hello", args, args.count).await;
    json!({
        "per_second": drained.ended as f64 / drained.time.as_secs_f64(),
        "failed": drained.failed,
        "unfinished": drained.unfinished,
    })
}

/// Each of the clients starts the next one when it has seen the end of its last one.
pub(super) async fn closed(world: &World, args: &Args) -> Value {
    let (count, time, limit) = (args.count, args.time, args.limit);
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..args.in_flight {
        let (client, next) = (world.client.clone(), Arc::clone(&next));
        clients.spawn(async move {
            let mut runs = Vec::new();
            while begun.elapsed() < time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let started = Instant::now();
                start(&client, &instance(number), "Hello", &number.to_string()).await;
                runs.push((wait(&client, &instance(number), limit).await, started.elapsed()));
            }
            runs
        });
    }
    let mut runs = Vec::new();
    while let Some(of_one) = clients.join_next().await {
        runs.extend(of_one.expect("a client does not panic"));
    }
    report(runs, begun.elapsed())
}

/// One at a time, with pauses of uneven length so that no polling falls into step with them.
pub(super) async fn idle(world: &World, args: &Args) -> Value {
    let begun = Instant::now();
    let mut runs = Vec::new();
    for number in 0..args.count {
        tokio::time::sleep(Duration::from_millis(20 + number as u64 * 37 % 100)).await;
        let started = Instant::now();
        start(&world.client, &instance(number), "Hello", &number.to_string()).await;
        runs.push((wait(&world.client, &instance(number), args.limit).await, started.elapsed()));
    }
    report(runs, begun.elapsed())
}

fn report(runs: Vec<(Option<bool>, Duration)>, time: Duration) -> Value {
    let how_many = |end| runs.iter().filter(|(found, _)| *found == end).count();
    let (completed, failed, unfinished) = (how_many(Some(true)), how_many(Some(false)), how_many(None));
    let mut latencies: Vec<f64> = runs.iter().map(|(_, latency)| ms(*latency)).collect();
    latencies.sort_by(f64::total_cmp);
    json!({
        "per_second": completed as f64 / time.as_secs_f64(),
        "p50_ms": percentile(&latencies, 50),
        "p99_ms": percentile(&latencies, 99),
        "failed": failed,
        "unfinished": unfinished,
    })
}

/// Of sorted values, the smallest that this many per cent do not exceed.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}
