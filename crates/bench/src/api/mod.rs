//! `cargo xtask bench api`: the HTTP API of `outlast serve` on a store with many instances, and its cost for a workload.

mod http;
mod load;
mod served;

use crate::cases::folder;
use crate::measure::{self, ms, percentile};
use crate::place::{Fill, file};
use duroxide::providers::Provider;
use duroxide::providers::postgres::PostgresProvider;
use duroxide::providers::sqlite::SqliteProvider;
pub(crate) use http::Http;
pub(crate) use load::{Load, generate};
use served::Served;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::NoTls;

/// The requests of each kind.
const REQUESTS: usize = 100;
/// The starts of the server.
const STARTS: usize = 9;
/// The highest 95th percentile of a request, and of the first byte of the page.
const SLOWEST_MS: f64 = 300.0;
const LARGEST: u64 = 25_000_000;
const SLOWEST_START_MS: f64 = 100.0;
const MOST_SLOWED: f64 = 10.0;

/// The measured requests.
const PATHS: [(&str, &str); 6] = [
    ("newest instances", "/api/v1/instances?limit=100"),
    ("running instances", "/api/v1/instances?status=running&limit=100"),
    ("failed instances of a name", "/api/v1/instances?status=failed&name=Order&limit=100"),
    ("a name that no instance has", "/api/v1/instances?name=Nothing&limit=100"),
    ("instances of a prefix", "/api/v1/instances?prefix=order-0000&limit=100"),
    ("counts", "/api/v1/instances/count"),
];

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// The program `outlast`
    outlast: PathBuf,
    /// Instances in each store
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    instances: u64,
    /// Seconds of a round of the workload
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
}

/// The lines of the report, and whether all targets are met.
struct Report {
    is_met: bool,
}

impl Report {
    fn line(&mut self, name: &str, value: f64, most: f64, unit: &str) {
        let is_met = value <= most;
        self.is_met &= is_met;
        let verdict = if is_met { "" } else { "  MISSED" };
        println!("| {name} | {value:.1} {unit} | at most {most:.0} {unit} |{verdict}");
    }
}

pub(crate) fn run(plan: &Plan) -> Result<bool, String> {
    let mut report = Report { is_met: true };
    let size = stripped_size(&plan.outlast)?;
    report.line("size of the program without symbols", size as f64 / 1e6, LARGEST as f64 / 1e6, "MB");
    measure::on_two_threads(async {
        sqlite(plan, &mut report).await?;
        match measure::server::url() {
            Ok(url) => postgres(plan, &url, &mut report).await?,
            Err(reason) => println!("PostgreSQL was not measured: {reason}"),
        }
        Ok(report.is_met)
    })
}

/// The size of the program without symbols, as the image of `deploy/Dockerfile` has it.
fn stripped_size(program: &Path) -> Result<u64, String> {
    let folder = folder();
    let stripped = folder.path().join("outlast");
    let done = Command::new("strip").arg("-o").arg(&stripped).arg(program).status();
    match done.map_err(|error| format!("strip: {error}"))?.success() {
        true => Ok(std::fs::metadata(&stripped).map_err(|error| error.to_string())?.len()),
        false => Err("strip failed".to_string()),
    }
}

fn fill(instances: u64) -> Fill {
    Fill { first: 1, last: instances, every_running: 1_001, every_failed: 2_001 }
}

async fn sqlite(plan: &Plan, report: &mut Report) -> Result<(), String> {
    let folder = folder();
    let file = file(&folder);
    let url = format!("sqlite:{}", file.display());
    let store = SqliteProvider::new(&url, None).await.map_err(|error| error.to_string())?;
    let direct = rusqlite::Connection::open(&file).map_err(|error| error.to_string())?;
    fill(plan.instances).sqlite(&direct)?;
    measure_store(plan, report, "SQLite", Arc::new(store), &["--store".to_string(), url]).await
}

async fn postgres(plan: &Plan, url: &str, report: &mut Report) -> Result<(), String> {
    let store = PostgresProvider::new_with_schema(url, Some("outlast")).await;
    let store = store.map_err(|error| error.to_string())?;
    let (direct, connection) =
        tokio_postgres::connect(url, NoTls).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    fill(plan.instances).postgres(&direct).await?;
    let place = ["--store", url, "--schema", "outlast"].map(str::to_string);
    measure_store(plan, report, "PostgreSQL", Arc::new(store), &place).await
}

async fn measure_store(
    plan: &Plan,
    report: &mut Report,
    name: &str,
    store: Arc<dyn Provider>,
    place: &[String],
) -> Result<(), String> {
    println!("\n{name}, {} instances:\n\n| | figure | target |\n|---|---:|---:|", plan.instances);
    starts(plan, report, place)?;
    let served = Served::start(&plan.outlast, place)?;
    let mut http = served.http()?;
    for (about, path) in PATHS {
        let mut times = Vec::new();
        for _ in 0..REQUESTS {
            times.push(ms(http.get(path)?.0.last));
        }
        report.line(&format!("{about}, p95 of {REQUESTS}"), percentile(&times, 95), SLOWEST_MS, "ms");
    }
    exact_counts(&served)?;
    let slowed = load::measure(store, &served, plan.seconds).await?;
    println!(
        "| workload | {:.0} hello/s, {:.0} beside requests, {:.0} without the generator's {:.2} processors | |",
        slowed.alone, slowed.beside, slowed.corrected, slowed.generator
    );
    report.line("requests beside the workload, p95", slowed.p95_ms, SLOWEST_MS, "ms");
    report.line("slowed by 200 requests per second", slowed.percent(), MOST_SLOWED, "%");
    Ok(())
}

/// Starts the server anew for each visit: no total is known then, and the totals are read while the second page is.
fn starts(plan: &Plan, report: &mut Report, place: &[String]) -> Result<(), String> {
    let (mut started, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let served = Served::start(&plan.outlast, place)?;
        started.push(ms(served.started_in));
        let mut page = served.http()?;
        first.push(ms(page.get("/instances")?.0.first));
        let (counts, host) = (served.http()?, served.host.clone());
        // The script of the page asks for the counts, as this thread does.
        let counting = std::thread::Builder::new().spawn(move || {
            let mut counts = counts;
            counts.get("/api/v1/instances/count").map(drop)
        });
        let counting = counting.map_err(|error| error.to_string())?;
        second.push(ms(Http::open(&host)?.get("/instances?status=completed")?.0.first));
        counting.join().map_err(|_| "the thread that counts panicked")??;
    }
    report.line("start until the first answer, median", percentile(&started, 50), SLOWEST_START_MS, "ms");
    report.line("first byte of the page after the start, p95", percentile(&first, 95), SLOWEST_MS, "ms");
    report.line("first byte while the totals are read, p95", percentile(&second, 95), SLOWEST_MS, "ms");
    Ok(())
}

/// Waits until the counts are exact, and prints the time.
fn exact_counts(served: &Served) -> Result<(), String> {
    let since = std::time::Instant::now();
    let mut http = served.http()?;
    while !http.get("/api/v1/instances/count")?.1.contains("\"exact\":true") {
        if since.elapsed() > Duration::from_secs(120) {
            return Err("the counts did not become exact".to_string());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("| counts are exact after | {:.0} ms | |", ms(since.elapsed()));
    Ok(())
}
