//! `cargo xtask bench lists`: the times of gauges, totals and lists in a store with many finished instances, beside the
//! times without the index of running and failed instances and without the limit of a page.

use crate::cases::folder;
use crate::measure;
use crate::place::{Fill, file};
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::providers::{InstanceQuery, ProviderAdmin};
use std::fmt::Write as _;
use std::time::Instant;
use tokio_postgres::NoTls;

const ROUNDS: usize = 7;
const PAGE: u32 = 100;
/// One instance in 1,001 runs, and one in 2,001 failed: with 1,000,000 finished instances, 1,000 run and about 500
/// failed.
const EVERY_RUNNING: u64 = 1_001;
const EVERY_FAILED: u64 = 2_001;

/// The measured pages: name, status, orchestration.
const PAGES: [(&str, Option<&str>, Option<&str>); 5] = [
    ("first page of all", None, None),
    ("first page of Running", Some("Running"), None),
    ("first page of Failed", Some("Failed"), None),
    ("first page of Completed", Some("Completed"), None),
    ("first page of a name that no instance has", None, Some("Nothing")),
];

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Finished instances
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    finished: u64,
}

pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let instances = plan.finished + plan.finished / (EVERY_RUNNING - 1);
    measure::on_two_threads(async {
        println!("{}", sqlite(instances).await?);
        match measure::server::url() {
            Ok(url) => println!("{}", postgres(&url, instances).await?),
            Err(reason) => println!("PostgreSQL was not measured: {reason}"),
        }
        Ok(())
    })
}

fn fill(instances: u64) -> Fill {
    Fill { first: 1, last: instances, every_running: EVERY_RUNNING, every_failed: EVERY_FAILED }
}

/// The median time of some calls in milliseconds, after one call that does not count, and the last answer.
async fn timed<T>(mut call: impl AsyncFnMut() -> T) -> (f64, T) {
    let mut answer = call().await;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let since = Instant::now();
        answer = call().await;
        times.push(measure::ms(since.elapsed()));
    }
    (measure::percentile(&times, 50), answer)
}

/// Name, milliseconds before and now, and the number of rows found.
struct Row(String, Option<f64>, f64, String);

/// Measures the store. `before` has one time for each page.
async fn rows(store: &dyn ProviderAdmin, before: &[f64]) -> Vec<Row> {
    let (totals, metrics) = timed(async || store.get_system_metrics().await.unwrap()).await;
    let (depths, _) = timed(async || store.get_queue_depths().await.unwrap()).await;
    let (gauges, shown) = timed(async || store.get_gauges().await.unwrap()).await;
    assert_eq!(shown.running_instances, metrics.running_instances);
    let found = format!("{} run", shown.running_instances);
    let mut rows = vec![Row("gauges of a runtime".to_string(), Some(totals + depths), gauges, found)];
    let found = format!("{} instances, {} events", metrics.total_instances, metrics.total_events);
    rows.push(Row("`get_system_metrics`".to_string(), None, totals, found));
    for ((name, status, orchestration), before) in PAGES.into_iter().zip(before) {
        let query = InstanceQuery {
            status: status.map(str::to_string),
            orchestration_name: orchestration.map(str::to_string),
            limit: Some(PAGE),
            ..InstanceQuery::default()
        };
        let (now, page) = timed(async || store.query_instances(&query).await.unwrap()).await;
        let more = if page.next.is_some() { ", more to look at" } else { "" };
        rows.push(Row(name.to_string(), Some(*before), now, format!("{}{more}", page.instances.len())));
    }
    for status in ["Running", "Failed"] {
        let (now, ids) = timed(async || store.list_instances_by_status(status).await.unwrap()).await;
        rows.push(Row(format!("ids of all that are {status}"), None, now, ids.len().to_string()));
    }
    rows
}

fn table(store: &str, instances: u64, rows: &[Row]) -> String {
    let mut text = format!(
        "{store}, {instances} instances, milliseconds, medians of {ROUNDS}:\n\n| | before | now | found |\n|---|---:|---:|---|"
    );
    for Row(name, before, now, found) in rows {
        let before = before.map_or("–".to_string(), |before| format!("{before:.2}"));
        let _ = write!(text, "\n| {name} | {before} | {now:.2} | {found} |");
    }
    text.push('\n');
    text
}

async fn sqlite(instances: u64) -> Result<String, String> {
    let folder = folder();
    let file = file(&folder);
    let url = format!("sqlite:{}", file.display());
    let open = async || SqliteProvider::new(&url, None).await.map_err(|error| error.to_string());
    drop(open().await?);
    let direct = rusqlite::Connection::open(&file).map_err(|error| error.to_string())?;
    fill(instances).sqlite(&direct)?;
    let mut before = Vec::new();
    for (_, status, name) in PAGES {
        let walk = async || {
            let mut page = direct.prepare_cached(include_str!("sql/page_by_walk_sqlite.sql")).unwrap();
            let wanted = rusqlite::params![
                i64::MAX,
                status,
                name,
                None::<&str>,
                None::<&str>,
                None::<i64>,
                None::<i64>,
                PAGE + 1
            ];
            page.query_map(wanted, |row| row.get::<_, String>(1)).unwrap().count()
        };
        before.push(timed(walk).await.0);
    }
    let store = open().await?;
    Ok(table("SQLite", instances, &rows(&store, &before).await))
}

async fn postgres(url: &str, instances: u64) -> Result<String, String> {
    let store = PostgresProvider::new_with_schema(url, Some("outlast")).await;
    let store = store.map_err(|error| error.to_string())?;
    let (direct, connection) =
        tokio_postgres::connect(url, NoTls).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    fill(instances).postgres(&direct).await?;
    let index = "(status, started_at) WHERE status IN ('Running', 'Failed')";
    direct
        .batch_execute("DROP INDEX outlast.executions_attention")
        .await
        .map_err(|error| error.to_string())?;
    let mut before = Vec::new();
    let limit = i64::from(PAGE + 1);
    let walk = include_str!("sql/page_by_walk_postgres.sql");
    for (_, status, name) in PAGES {
        let none = None::<&str>;
        let no_time = None::<i64>;
        let page = async || {
            direct
                .query(walk, &[&i64::MAX, &status, &name, &none, &none, &no_time, &no_time, &limit])
                .await
                .unwrap()
                .len()
        };
        before.push(timed(page).await.0);
    }
    let index = format!("CREATE INDEX executions_attention ON outlast.executions {index}");
    direct.batch_execute(&index).await.map_err(|error| error.to_string())?;
    Ok(table("PostgreSQL", instances, &rows(&store, &before).await))
}
