//! `cargo xtask bench held`: orchestrations per second and idle CPU time with held instances, each with one waiting message, and
//! without; against targets.

use crate::cases::folder;
use crate::hello::{registries, start, started};
use crate::measure::{self, percentile, usage};
use crate::verdict::{self, Verdict};
use duroxide::client::Client;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::providers::{Hold, HoldKind, HoldOutcome, Provider, WorkItem};
use duroxide::runtime::{Runtime, RuntimeOptions};
use futures::StreamExt;
use outlast_provider::model::Event;
use outlast_provider::{ExecutionMetadata, TurnCommit, TurnRequest};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
/// Orchestrations that run at the same time.
const AT_ONCE: usize = 64;
/// Calls of the preparation that run at the same time.
const CALLS: usize = 256;
/// Long enough that a few milliseconds of a background task stay below the target.
const IDLE: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(600);
/// With held instances, the rate is at least this share of the rate without.
const LEAST_RATE: f64 = 0.95;
/// With held instances, an idle runtime uses at most this much more of a core, in percent.
const MOST_MORE_IDLE: f64 = 0.1;

/// The figures of a runtime on a store.
struct Figures {
    /// Orchestrations per second, the median of some rounds.
    rate: f64,
    /// The share of a core that the idle runtime uses, in percent.
    idle: f64,
}

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Held instances
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    held: usize,
    /// Orchestrations of a round
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    cycles: usize,
}

pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    let (held, cycles) = (plan.held, plan.cycles);
    measure::on_two_threads(async {
        let folder = folder();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let store = SqliteProvider::new(&url, None).await.map_err(|error| error.to_string())?;
        let mut met = measure_store("SQLite", Arc::new(store), held, cycles).await?;
        match measure::server::url() {
            Ok(url) => {
                let store = PostgresProvider::new_with_schema(&url, Some("outlast")).await;
                let store = store.map_err(|error| error.to_string())?;
                met &= measure_store("PostgreSQL", Arc::new(store), held, cycles).await?;
            }
            Err(reason) => println!("PostgreSQL was not measured: {reason}"),
        }
        Ok(met)
    })
}

/// Whether the targets are met.
async fn measure_store(
    name: &str,
    store: Arc<dyn Provider>,
    held: usize,
    cycles: usize,
) -> Result<bool, String> {
    let before = rounds(&store, "before", cycles).await;
    let since = Instant::now();
    hold_instances(&store, held).await?;
    println!("{name}: {held} instances were held in {} s", since.elapsed().as_secs());
    let after = rounds(&store, "after", cycles).await;
    Ok(verdict::print(&verdicts(name, held, &before, &after)))
}

fn verdicts(name: &str, held: usize, before: &Figures, after: &Figures) -> [Verdict; 2] {
    let share = after.rate / before.rate;
    let more = after.idle - before.idle;
    [
        Verdict {
            holds: share >= LEAST_RATE,
            text: format!(
                "{name}: hello/s {:.0} with 0 held instances, {:.0} with {held} ({:.1} %; at least {:.0} %)",
                before.rate,
                after.rate,
                share * 100.0,
                LEAST_RATE * 100.0
            ),
        },
        Verdict {
            holds: more <= MOST_MORE_IDLE,
            text: format!(
                "{name}: idle CPU {:.2} % of a core with 0 held instances, {:.2} % with {held} ({more:+.2} %; at most \
                 {MOST_MORE_IDLE:+} %)",
                before.idle, after.idle
            ),
        },
    ]
}

/// Runs rounds of orchestrations, and idles.
async fn rounds(store: &Arc<dyn Provider>, prefix: &str, cycles: usize) -> Figures {
    let (activities, orchestrations) = registries();
    let options =
        RuntimeOptions { orchestration_concurrency: 16, worker_concurrency: 16, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(Arc::clone(store), activities, orchestrations, options).await;
    let client = Client::new(Arc::clone(store));
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let since = Instant::now();
        let runs = (0..cycles).map(|n| {
            let (client, id) = (client.clone(), format!("hello-{prefix}-{round}-{n}"));
            async move {
                client.start_orchestration(&id, "Hello", "world").await.unwrap();
                client.wait_for_orchestration(&id, LONG).await.unwrap();
            }
        });
        futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        rates.push(cycles as f64 / since.elapsed().as_secs_f64());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (used, since) = (usage::used(), Instant::now());
    tokio::time::sleep(IDLE).await;
    let idle = (usage::used() - used).as_secs_f64() / since.elapsed().as_secs_f64() * 100.0;
    runtime.shutdown(None).await;
    Figures { rate: percentile(&rates, 50), idle }
}

/// Creates instances, holds them, and sends each a message.
async fn hold_instances(store: &Arc<dyn Provider>, count: usize) -> Result<(), String> {
    let admin = store.as_management_capability().ok_or("the store has no management interface")?;
    let hold = Hold { kind: HoldKind::Paused, actor: "bench".to_string(), reason: String::new() };
    let (hold, id) = (&hold, |n: usize| format!("held-{n}"));
    let starts =
        (0..count).map(|n| async move { store.enqueue_for_orchestrator(start(&id(n)), None).await.unwrap() });
    futures::stream::iter(starts).buffer_unordered(CALLS).collect::<Vec<()>>().await;
    let turns = (0..count).map(|_| async move { begin(store.as_ref()).await });
    futures::stream::iter(turns).buffer_unordered(CALLS).collect::<Vec<()>>().await;
    let holds = (0..count).map(|n| async move {
        assert_eq!(admin.hold_instance(&id(n), hold).await, Ok(HoldOutcome::Held));
        let message = WorkItem::ExternalRaised { instance: id(n), name: "go".into(), data: "on".into() };
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    });
    futures::stream::iter(holds).buffer_unordered(CALLS).collect::<Vec<()>>().await;
    let counts = admin.count_held().await.map_err(|error| error.to_string())?.unwrap_or_default();
    assert_eq!((counts.instances, counts.messages), (count as u64, count as u64));
    Ok(())
}

/// Commits the first turn of an instance.
async fn begin(store: &dyn Provider) {
    let request = TurnRequest { lock_timeout: LONG, poll_timeout: LONG, filter: None, with_history: false };
    let turn = store.fetch_turn(request).await.unwrap().expect("a start waits");
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(1, turn.item.instance.as_str(), 1, None, started("Held"))],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Held".to_string()),
            orchestration_version: Some("1.0.0".to_string()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_rate_and_more_idle_time_are_missed() {
        let before = Figures { rate: 1_000.0, idle: 0.25 };
        let of =
            |rate, idle| verdicts("a store", 10, &before, &Figures { rate, idle }).map(|found| found.holds);
        assert_eq!(of(950.0, 0.34), [true, true]);
        assert_eq!(of(949.0, 0.0), [false, true]);
        assert_eq!(of(1_100.0, 0.36), [true, false]);
    }
}
