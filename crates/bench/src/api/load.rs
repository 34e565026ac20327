//! 200 requests per second beside a full workload. The generator is a process of its own, whose processor time is known.

use super::http::Http;
use super::served::Served;
use crate::hello::registries;
use crate::measure::{ms, percentile, usage};
use duroxide::client::Client;
use duroxide::providers::Provider;
use duroxide::runtime::{Runtime, RuntimeOptions};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Requests per second, over all connections.
const RATE: u32 = 200;
const CONNECTIONS: u32 = 4;
/// Orchestrations that run at the same time.
const AT_ONCE: usize = 64;
const ROUNDS: usize = 5;
/// The instances that the requests read.
const TARGETS: usize = 100;
/// The processors of the measurement.
const PROCESSORS: f64 = 2.0;
const LONG: Duration = Duration::from_secs(600);

pub(crate) struct Slowed {
    /// Orchestrations per second, medians.
    pub(crate) alone: f64,
    pub(crate) beside: f64,
    /// The same without the processor time of the generator.
    pub(crate) corrected: f64,
    /// The latency of the requests.
    pub(crate) p95_ms: f64,
    /// The share of one processor that the generator used.
    pub(crate) generator: f64,
}

impl Slowed {
    /// Per cent by which the requests slow the workload.
    pub(crate) fn percent(&self) -> f64 {
        (1.0 - self.corrected / self.alone) * 100.0
    }
}

/// Interleaved rounds without and with requests.
pub(crate) async fn measure(
    store: Arc<dyn Provider>,
    served: &Served,
    seconds: u64,
) -> Result<Slowed, String> {
    let (activities, orchestrations) = registries();
    let options =
        RuntimeOptions { orchestration_concurrency: 16, worker_concurrency: 16, ..RuntimeOptions::default() };
    let runtime = Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options).await;
    let client = Client::new(store);
    for target in 0..TARGETS {
        hello(&client, &format!("target-{target}")).await;
    }
    let time = Duration::from_secs(seconds);
    round(&client, "warm", time / 2).await;
    let (mut alone, mut beside, mut corrected) = (Vec::new(), Vec::new(), Vec::new());
    let (mut p95, mut generator) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        alone.push(round(&client, &format!("alone-{number}"), time).await);
        let load = Generator::start(&served.host, time)?;
        let rate = round(&client, &format!("beside-{number}"), time).await;
        let (took, used) = load.end()?;
        beside.push(rate);
        corrected.push(rate / (1.0 - used / PROCESSORS));
        p95.push(took);
        generator.push(used);
    }
    runtime.shutdown(None).await;
    let median = |values: &[f64]| percentile(values, 50);
    Ok(Slowed {
        alone: median(&alone),
        beside: median(&beside),
        corrected: median(&corrected),
        p95_ms: median(&p95),
        generator: median(&generator),
    })
}

async fn hello(client: &Client, id: &str) {
    client.start_orchestration(id, "Hello", "world").await.unwrap();
    client.wait_for_orchestration(id, LONG).await.unwrap();
}

/// Orchestrations per second while as many as may run at the same time.
async fn round(client: &Client, prefix: &str, time: Duration) -> f64 {
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let since = Instant::now();
    let lane = async |lane: usize| {
        let mut number = 0_u64;
        while !is_over.load(Ordering::Relaxed) {
            hello(client, &format!("{prefix}-{lane}-{number}")).await;
            number += 1;
            done.fetch_add(1, Ordering::Relaxed);
            is_over.fetch_or(since.elapsed() >= time, Ordering::Relaxed);
        }
    };
    futures::future::join_all((0..AT_ONCE).map(lane)).await;
    done.load(Ordering::Relaxed) as f64 / since.elapsed().as_secs_f64()
}

/// The process of the generator.
struct Generator(std::process::Child);

impl Generator {
    fn start(host: &str, time: Duration) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["api-load", host, &time.as_secs().to_string()]).stdout(Stdio::piped());
        command.spawn().map(Self).map_err(|error| format!("{command:?}: {error}"))
    }

    /// The 95th percentile of the latencies, and the share of a processor that the generator used.
    fn end(self) -> Result<(f64, f64), String> {
        let ended = self.0.wait_with_output().map_err(|error| error.to_string())?;
        let line: Value =
            serde_json::from_slice(&ended.stdout).map_err(|error| format!("the generator: {error}"))?;
        let number = |field: &str| line[field].as_f64().ok_or(format!("the generator said {line}"));
        if let Some(error) = line["error"].as_str() {
            return Err(error.to_string());
        }
        Ok((number("p95_ms")?, number("processor")?))
    }
}

/// The load of `outlast-bench api-load`.
#[derive(clap::Args)]
pub(crate) struct Load {
    host: String,
    seconds: u64,
}

/// Sends the requests and prints a line of JSON.
pub(crate) fn generate(load: &Load) -> Result<(), String> {
    let (host, seconds) = (&load.host, load.seconds);
    let began = Instant::now();
    let threads: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let host = host.clone();
            let body = move || send(&host, number, Duration::from_secs(seconds));
            std::thread::Builder::new().spawn(body).map_err(|error| error.to_string())
        })
        .collect::<Result<_, _>>()?;
    let mut times = Vec::new();
    let mut error = None;
    for thread in threads {
        match thread.join().map_err(|_| "a thread of the generator panicked")? {
            Ok(more) => times.extend(more),
            Err(text) => error = Some(text),
        }
    }
    // The threads have ended, so only the process still has their time.
    let used = usage::used_by_family(std::process::id());
    let processor = used.as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({ "requests": times.len(), "p95_ms": percentile(&times, 95), "processor": processor, "error": error })
    );
    Ok(())
}

/// The requests of one connection: 60 % one instance, 30 % lists, 10 % counts.
fn send(host: &str, offset: u32, time: Duration) -> Result<Vec<f64>, String> {
    let gap = Duration::from_secs(1) * CONNECTIONS / RATE;
    let mut http = Http::open(host)?;
    let mut times = Vec::new();
    let began = Instant::now();
    for number in 0_u32.. {
        let due = gap * number + gap * offset / CONNECTIONS;
        if due >= time {
            break;
        }
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let path = match number % 10 {
            0..6 => format!("/api/v1/instances/target-{}", (number * 7 + offset) as usize % TARGETS),
            6 => "/api/v1/instances?limit=50".to_string(),
            7 => "/api/v1/instances?status=failed&limit=50".to_string(),
            8 => "/api/v1/instances?status=running&name=Order&limit=50".to_string(),
            _ => "/api/v1/instances/count".to_string(),
        };
        let (took, _) = http.get(&path)?;
        times.push(ms(took.last));
    }
    Ok(times)
}
