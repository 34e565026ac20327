//! Starts orchestrations and takes their times.

use super::sample::Sample;
use super::store::Store;
use duroxide::client::Client;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_secs(120);
const SECOND: Duration = Duration::from_secs(1);
/// Seconds between two lines on the screen.
const LINE_EVERY: usize = 10;
/// At a fixed rate, the most orchestrations that wait for their end. A store that is slower than the rate reaches it.
const MOST_WAITING: usize = 20_000;

#[derive(Clone, Copy)]
pub(super) enum Load {
    /// As many at the same time; the next one starts when one ends.
    InFlight(usize),
    /// Starts at fixed times, whatever the store does. The times of the orchestrations begin when their starts are due.
    PerSecond(f64),
}

type Times = Arc<Mutex<Vec<Duration>>>;

/// Runs a load for this time, with a sample of every second.
pub(super) async fn run(
    store: &Store,
    name: &str,
    load: Load,
    time: Duration,
) -> Result<Vec<Sample>, String> {
    let times = Times::default();
    let begun = Instant::now();
    let starting =
        tokio::spawn(starts(store.client.clone(), name.to_string(), load, begun, time, Arc::clone(&times)));
    let (mut samples, mut since) = (Vec::new(), begun);
    while begun.elapsed() < time {
        tokio::time::sleep_until((since + SECOND).into()).await;
        let taken = std::mem::take(&mut *times.lock().unwrap());
        let sample = Sample::of(samples.len() + 1, since.elapsed(), &taken);
        since = Instant::now();
        let sample = store.measure(sample).await?;
        if samples.len() % LINE_EVERY == LINE_EVERY - 1 {
            println!(
                "{name} load, {:>4} s: {:>6.0}/s, p50 {:.2} ms, p99 {:.2} ms, {:.0} MiB of memory, store {:.0} MiB",
                sample.second, sample.throughput, sample.p50, sample.p99, sample.memory, sample.store
            );
        }
        samples.push(sample);
    }
    starting.await.map_err(|error| error.to_string())??;
    Ok(samples)
}

async fn starts(
    client: Client,
    name: String,
    load: Load,
    begun: Instant,
    time: Duration,
    times: Times,
) -> Result<(), String> {
    let mut running = JoinSet::new();
    for number in 0_u64.. {
        let due = match load {
            Load::InFlight(most) => {
                if running.len() >= most {
                    ended(running.join_next().await)?;
                }
                Instant::now()
            }
            Load::PerSecond(rate) => {
                let due = begun + Duration::from_secs_f64(number as f64 / rate);
                tokio::time::sleep_until(due.into()).await;
                while let Some(done) = running.try_join_next() {
                    ended(Some(done))?;
                }
                if running.len() >= MOST_WAITING {
                    return Err(format!(
                        "{MOST_WAITING} orchestrations wait: the store is slower than {rate:.0}/s"
                    ));
                }
                due
            }
        };
        if begun.elapsed() >= time {
            break;
        }
        running.spawn(hello(client.clone(), format!("{name}-{number}"), due, Arc::clone(&times)));
    }
    while let Some(done) = running.join_next().await {
        ended(Some(done))?;
    }
    Ok(())
}

fn ended(done: Option<Result<Result<(), String>, tokio::task::JoinError>>) -> Result<(), String> {
    match done {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(error.to_string()),
        None => Ok(()),
    }
}

async fn hello(client: Client, id: String, due: Instant, times: Times) -> Result<(), String> {
    client.start_orchestration(&id, "Hello", "world").await.map_err(|error| error.to_string())?;
    client.wait_for_orchestration(&id, LIMIT).await.map_err(|error| format!("{id}: {error}"))?;
    times.lock().unwrap().push(due.elapsed());
    Ok(())
}
