//! `cargo xtask bench additions`: what the additions for operators cost orchestrations of one activity. A store without them has no index
//! of running and failed instances, and its runtime reports no node. The other additions store nothing while an orchestration runs.

use crate::cases::folder;
use crate::hello::registries;
use crate::measure::{self, percentile};
use crate::place::file;
use crate::verdict::{self, Verdict};
use duroxide::client::Client;
use duroxide::providers::Provider;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::{Runtime, RuntimeOptions};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// Orchestrations that run at the same time.
const AT_ONCE: usize = 64;
const LONG: Duration = Duration::from_secs(600);
/// The additions may cost less than this share, in percent.
const MOST_PERCENT: f64 = 3.0;
/// The index that one of the two stores does not have.
const INDEX: &str = "executions_attention";

/// A store, and whether it has the additions.
struct Side {
    store: Arc<dyn Provider>,
    has_additions: bool,
    /// The folder of a SQLite file, which is removed with the value.
    _folder: Option<TempDir>,
}

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Orchestrations of a round
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    cycles: usize,
    /// Rounds on each side
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
}

pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    let (rounds, cycles) = (plan.rounds, plan.cycles);
    measure::on_two_threads(async {
        let sides = [sqlite(false).await?, sqlite(true).await?];
        let mut met = measure_sides("SQLite", &sides, rounds, cycles).await;
        match measure::server::url() {
            Ok(url) => {
                let sides = [postgres(&url, false).await?, postgres(&url, true).await?];
                met &= measure_sides("PostgreSQL", &sides, rounds, cycles).await;
            }
            Err(reason) => println!("PostgreSQL was not measured: {reason}"),
        }
        Ok(met)
    })
}

async fn sqlite(has_additions: bool) -> Result<Side, String> {
    let folder = folder();
    let url = format!("sqlite:{}", file(&folder).display());
    let store = SqliteProvider::new(&url, None).await.map_err(|error| error.to_string())?;
    if !has_additions {
        let direct = rusqlite::Connection::open(file(&folder)).map_err(|error| error.to_string())?;
        direct.execute_batch(&format!("DROP INDEX {INDEX}")).map_err(|error| error.to_string())?;
    }
    Ok(Side { store: Arc::new(store), has_additions, _folder: Some(folder) })
}

async fn postgres(url: &str, has_additions: bool) -> Result<Side, String> {
    let schema = if has_additions { "with_additions" } else { "without_additions" };
    let store =
        PostgresProvider::new_with_schema(url, Some(schema)).await.map_err(|error| error.to_string())?;
    if !has_additions {
        let (direct, connection) =
            tokio_postgres::connect(url, NoTls).await.map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        let dropped = direct.batch_execute(&format!("DROP INDEX {schema}.{INDEX}")).await;
        dropped.map_err(|error| error.to_string())?;
    }
    Ok(Side { store: Arc::new(store), has_additions, _folder: None })
}

/// Runs rounds on both stores in turn, so that a change of the machine's load meets both. Whether the target is met.
async fn measure_sides(name: &str, sides: &[Side; 2], rounds: usize, cycles: usize) -> bool {
    // A round that does not count: files grow, and connections are opened.
    for side in sides {
        rate(side, 0, cycles).await;
    }
    let mut pairs = Vec::new();
    for round in 1..=rounds {
        let [without, with] = sides;
        // Neither store is always the first of its round.
        let pair = match round % 2 {
            0 => {
                let with = rate(with, round, cycles).await;
                (rate(without, round, cycles).await, with)
            }
            _ => (rate(without, round, cycles).await, rate(with, round, cycles).await),
        };
        println!("{name}: hello/s {:.0} without the additions, {:.0} with them", pair.0, pair.1);
        pairs.push(pair);
    }
    verdict::print(&[verdict_of(name, &pairs)])
}

/// The share is the median over the rounds: a round in which the machine had other work does not decide.
fn verdict_of(name: &str, pairs: &[(f64, f64)]) -> Verdict {
    let costs: Vec<f64> = pairs.iter().map(|(without, with)| (1.0 - with / without) * 100.0).collect();
    let cost = percentile(&costs, 50);
    let (least, most) = (percentile(&costs, 0), percentile(&costs, 100));
    Verdict {
        holds: cost < MOST_PERCENT,
        text: format!(
            "{name}: the additions cost hello {cost:.1} % ({least:.1} to {most:.1} % in {} rounds; less than {MOST_PERCENT:.0} %)",
            pairs.len()
        ),
    }
}

/// Orchestrations per second of a runtime that starts for this round.
async fn rate(side: &Side, round: usize, cycles: usize) -> f64 {
    let (activities, orchestrations) = registries();
    let mut options =
        RuntimeOptions { orchestration_concurrency: 16, worker_concurrency: 16, ..RuntimeOptions::default() };
    if !side.has_additions {
        options.node_heartbeat = None;
    }
    let store = Arc::clone(&side.store);
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    let since = Instant::now();
    let runs = (0..cycles).map(|n| {
        let (client, id) = (client.clone(), format!("hello-{round}-{n}"));
        async move {
            client.start_orchestration(&id, "Hello", "world").await.unwrap();
            client.wait_for_orchestration(&id, LONG).await.unwrap();
        }
    });
    futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    let rate = cycles as f64 / since.elapsed().as_secs_f64();
    runtime.shutdown(None).await;
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_that_cost_three_percent_are_missed() {
        let of = |with: [f64; 3]| verdict_of("a store", &with.map(|with| (1_000.0, with))).holds;
        assert!(of([975.0, 971.0, 600.0]), "one slow round does not decide");
        assert!(!of([970.0, 969.0, 1_200.0]));
    }
}
