//! `cargo xtask bench sizes`: the sizes of the tables in PostgreSQL after many orchestrations, after their deletion,
//! and after as many more.

use crate::hello::registries;
use crate::measure;
use duroxide::providers::ProviderAdmin;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::runtime::Runtime;
use duroxide::{Client, InstanceFilter, RuntimeOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

const SCHEMA: &str = "outlast";
/// Clients that start orchestrations.
const STARTERS: usize = 32;
/// Longest time until autovacuum runs; autovacuum checks once a minute.
const VACUUM: Duration = Duration::from_secs(240);

/// Bytes of each table and of its indexes.
type Sizes = BTreeMap<String, (i64, i64)>;

struct MeasuredStore {
    store: Arc<PostgresProvider>,
    client: Client,
    runtime: Arc<Runtime>,
    watcher: tokio_postgres::Client,
}

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Orchestrations
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    count: usize,
}

pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    println!("{}", measure::on_two_threads(measure_sizes(plan.count))?);
    Ok(())
}

async fn measure_sizes(count: usize) -> Result<String, String> {
    let store_under_test = MeasuredStore::open().await?;
    let mut measurements = vec![("empty".to_string(), store_under_test.sizes().await)];
    let mut times = Vec::new();
    for (round, more) in [("", ""), ("again ", " more")] {
        let begun = Instant::now();
        store_under_test.hello(round.trim(), count).await;
        times.push(format!("{count}{more} orchestrations took {:.0} s", begun.elapsed().as_secs_f64()));
        measurements.push((format!("{round}{count}{more}"), store_under_test.sizes().await));
        let deletion = store_under_test.delete(count).await;
        times.push(deletion);
        measurements.push((format!("{round}deleted"), store_under_test.sizes().await));
        let begun = Instant::now();
        store_under_test.wait_for_vacuum(count).await?;
        times.push(format!("autovacuum was done {:.0} s later", begun.elapsed().as_secs_f64()));
        measurements.push((format!("{round}vacuumed"), store_under_test.sizes().await));
    }
    store_under_test.runtime.shutdown(None).await;
    Ok(format!("{}\n{}", table(&measurements), times.join("; ")))
}

impl MeasuredStore {
    async fn open() -> Result<Self, String> {
        let url = measure::server::url()?;
        let store = PostgresProvider::new_with_schema(&url, Some(SCHEMA)).await;
        let store = Arc::new(store.map_err(|error| error.to_string())?);
        let (watcher, connection) =
            tokio_postgres::connect(&url, NoTls).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let (activities, orchestrations) = registries();
        let options = RuntimeOptions {
            orchestration_concurrency: 16,
            worker_concurrency: 16,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Ok(Self { client: Client::new(store.clone()), store, runtime, watcher })
    }

    /// Runs this many orchestrations to their end.
    async fn hello(&self, round: &str, count: usize) {
        let mut starters = JoinSet::new();
        for first in 0..STARTERS {
            let (client, round) = (self.client.clone(), round.to_string());
            starters.spawn(async move {
                for number in (first..count).step_by(STARTERS) {
                    let instance = format!("hello-{round}{number:06}");
                    client.start_orchestration(&instance, "Hello", number.to_string()).await.unwrap();
                }
            });
        }
        starters.join_all().await;
        while self.store.get_system_metrics().await.unwrap().completed_instances < count as u64 {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Deletes all instances in bounded calls, as a periodic job would.
    async fn delete(&self, count: usize) -> String {
        let (begun, mut longest, mut calls, mut deleted_count) = (Instant::now(), Duration::ZERO, 0, 0);
        loop {
            let since = Instant::now();
            let deleted = self.client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
            longest = longest.max(since.elapsed());
            if deleted.instances_deleted == 0 {
                break;
            }
            calls += 1;
            deleted_count += deleted.instances_deleted;
        }
        assert_eq!(deleted_count, count as u64);
        let (took, longest) = (begun.elapsed().as_secs_f64(), longest.as_secs_f64());
        format!("deleting them took {took:.0} s in {calls} calls, the longest {longest:.1} s")
    }

    async fn sizes(&self) -> Sizes {
        let rows = self.watcher.query(include_str!("sql/sizes.sql"), &[&SCHEMA]).await.unwrap();
        rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
    }

    /// Waits until autovacuum has removed the deleted rows.
    async fn wait_for_vacuum(&self, count: usize) -> Result<(), String> {
        let begun = Instant::now();
        // Autovacuum ignores tables with fewer dead rows, a fifth of a table by default.
        let few = i64::try_from(count / 10).unwrap_or(i64::MAX);
        while begun.elapsed() < VACUUM {
            let most =
                self.watcher.query_one(include_str!("sql/most_dead_rows.sql"), &[&SCHEMA]).await.unwrap();
            if most.get::<_, i64>(0) <= few {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err(format!("autovacuum has not run in {VACUUM:?}"))
    }
}

/// A table with a row for each table of the store that ever had rows, and a sum.
fn table(measurements: &[(String, Sizes)]) -> String {
    let cell = |(table, indexes): (i64, i64)| format!(" {} + {} |", megabytes(table), megabytes(indexes));
    let mut text = String::from("MB, table + indexes |");
    for (name, _) in measurements {
        let _ = write!(text, " {name} |");
    }
    let mut text = format!("| {text}\n|---|{}", "---:|".repeat(measurements.len()));
    let empty = &measurements[0].1;
    for name in empty.keys() {
        if measurements.iter().any(|(_, sizes)| sizes[name] != empty[name]) {
            let _ = write!(text, "\n| `{name}` |");
            measurements.iter().for_each(|(_, sizes)| text.push_str(&cell(sizes[name])));
        }
    }
    text.push_str("\n| all |");
    for (_, sizes) in measurements {
        let all = sizes.values().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        text.push_str(&cell(all));
    }
    text
}

fn megabytes(bytes: i64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
