//! `cargo xtask bench sizes`: what orchestrations leave in PostgreSQL, what is left of it when they are deleted, and whether
//! the next ones use the space again.

use crate::measure;
use duroxide::providers::ProviderAdmin;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, InstanceFilter, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

const SCHEMA: &str = "outlast";
/// Clients that start orchestrations.
const STARTERS: usize = 32;
/// How long autovacuum may take to come by: it looks once a minute.
const VACUUM: Duration = Duration::from_secs(240);

/// What a moment looks like: bytes of each table with what belongs to it, and of its indexes.
type Sizes = BTreeMap<String, (i64, i64)>;

struct World {
    store: Arc<PostgresProvider>,
    client: Client,
    runtime: Arc<Runtime>,
    watcher: tokio_postgres::Client,
}

pub(crate) fn main(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let count = match (args.next().as_deref(), args.next()) {
        (None, _) => 100_000,
        (Some("--count"), Some(count)) => {
            count.parse().map_err(|_| format!("--count is a number, not '{count}'"))?
        }
        (Some(other), _) => return Err(format!("unknown option '{other}'")),
    };
    println!("{}", measure::on_two_threads(run(count))?);
    Ok(())
}

async fn run(count: usize) -> Result<String, String> {
    let world = World::open().await?;
    let mut moments = vec![("empty".to_string(), world.sizes().await)];
    let mut times = Vec::new();
    for (round, more) in [("", ""), ("again ", " more")] {
        let begun = Instant::now();
        world.hello(round.trim(), count).await;
        times.push(format!("{count}{more} orchestrations took {:.0} s", begun.elapsed().as_secs_f64()));
        moments.push((format!("{round}{count}{more}"), world.sizes().await));
        let deletion = world.delete(count).await;
        times.push(deletion);
        moments.push((format!("{round}deleted"), world.sizes().await));
        let begun = Instant::now();
        world.vacuumed(count).await?;
        times.push(format!("autovacuum was through {:.0} s later", begun.elapsed().as_secs_f64()));
        moments.push((format!("{round}vacuumed"), world.sizes().await));
    }
    world.runtime.shutdown(None).await;
    Ok(format!("{}\n{}", table(&moments), times.join("; ")))
}

impl World {
    async fn open() -> Result<Self, String> {
        let url = measure::server::url()?;
        let store = PostgresProvider::new_with_schema(&url, Some(SCHEMA)).await;
        let store = Arc::new(store.map_err(|error| error.to_string())?);
        let (watcher, connection) =
            tokio_postgres::connect(&url, NoTls).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let activities = ActivityRegistry::builder()
            .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
            .build();
        let hello = |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        };
        let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
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

    /// Removes everything, as a timer would: some at a time.
    async fn delete(&self, count: usize) -> String {
        let (begun, mut longest, mut calls, mut gone) = (Instant::now(), Duration::ZERO, 0, 0);
        loop {
            let since = Instant::now();
            let deleted = self.client.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
            longest = longest.max(since.elapsed());
            if deleted.instances_deleted == 0 {
                break;
            }
            calls += 1;
            gone += deleted.instances_deleted;
        }
        assert_eq!(gone, count as u64);
        let (took, longest) = (begun.elapsed().as_secs_f64(), longest.as_secs_f64());
        format!("deleting them took {took:.0} s in {calls} calls, the longest {longest:.1} s")
    }

    async fn sizes(&self) -> Sizes {
        let rows = self.watcher.query(include_str!("sql/sizes.sql"), &[&SCHEMA]).await.unwrap();
        rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect()
    }

    /// Waits until autovacuum has been at what was deleted.
    async fn vacuumed(&self, count: usize) -> Result<(), String> {
        let begun = Instant::now();
        // What is less is not worth a visit: a fifth of a table, by default.
        let few = i64::try_from(count / 10).unwrap_or(i64::MAX);
        while begun.elapsed() < VACUUM {
            let most =
                self.watcher.query_one(include_str!("sql/most_dead_rows.sql"), &[&SCHEMA]).await.unwrap();
            if most.get::<_, i64>(0) <= few {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err(format!("autovacuum has not come by in {VACUUM:?}"))
    }
}

/// A row per table that ever had anything in it, and a sum.
fn table(moments: &[(String, Sizes)]) -> String {
    let cell = |(table, indexes): (i64, i64)| format!(" {} + {} |", megabytes(table), megabytes(indexes));
    let mut text = String::from("MB, table + indexes |");
    for (name, _) in moments {
        let _ = write!(text, " {name} |");
    }
    let mut text = format!("| {text}\n|---|{}", "---:|".repeat(moments.len()));
    let empty = &moments[0].1;
    for name in empty.keys() {
        if moments.iter().any(|(_, sizes)| sizes[name] != empty[name]) {
            let _ = write!(text, "\n| `{name}` |");
            moments.iter().for_each(|(_, sizes)| text.push_str(&cell(sizes[name])));
        }
    }
    text.push_str("\n| all |");
    for (_, sizes) in moments {
        let all = sizes.values().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        text.push_str(&cell(all));
    }
    text
}

fn megabytes(bytes: i64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}
