//! The cost of metrics and spans, for a tool that counts instructions: the same orchestrations without recorder and
//! subscriber, with one of them, and with both.

use duroxide::providers::sqlite::SqliteProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_util::registry::{AtomicStorage, Registry};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Number of orchestrations that run at once.
const AT_ONCE: usize = 16;

/// A recorder that keeps every metric in atomics, as exporters do.
struct AtomicRecorder(Registry<Key, AtomicStorage>);

impl Recorder for AtomicRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.0.get_or_create_counter(key, |counter| Counter::from_arc(Arc::clone(counter)))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.0.get_or_create_gauge(key, |gauge| Gauge::from_arc(Arc::clone(gauge)))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.0.get_or_create_histogram(key, |histogram| Histogram::from_arc(Arc::clone(histogram)))
    }
}

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// A recorder for metrics, a subscriber for the spans of store operations, both or neither
    #[arg(value_parser = ["nothing", "metrics", "spans", "both"])]
    mode: String,
    /// Orchestrations
    #[arg(default_value_t = 2_000)]
    count: usize,
}

pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let (mode, count) = (plan.mode.as_str(), plan.count);
    let (with_metrics, with_spans) = (matches!(mode, "metrics" | "both"), matches!(mode, "spans" | "both"));
    if with_metrics {
        metrics::set_global_recorder(AtomicRecorder(Registry::atomic()))
            .map_err(|error| error.to_string())?;
    }
    if with_spans {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter("duroxide::providers=debug")
            .with_writer(std::io::sink)
            .finish();
        tracing::subscriber::set_global_default(subscriber).map_err(|error| error.to_string())?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let took = runtime.block_on(hello(count));
    println!("{mode}: {count} orchestrations in {:.3} s", took.as_secs_f64());
    Ok(())
}

/// Runs this many orchestrations of one activity each on a store in memory, so that no disk time is included.
async fn hello(count: usize) -> Duration {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let activities = ActivityRegistry::builder()
        .register("Greet", |_: ActivityContext, name: String| async move { Ok(format!("hello, {name}")) })
        .build();
    let hello =
        |ctx: OrchestrationContext, name: String| async move { ctx.schedule_activity("Greet", name).await };
    let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
    let options = RuntimeOptions {
        orchestration_concurrency: AT_ONCE,
        worker_concurrency: AT_ONCE,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for first in 0..AT_ONCE {
        let client = client.clone();
        callers.spawn(async move {
            for number in (first..count).step_by(AT_ONCE) {
                let instance = format!("hello-{number:06}");
                client.start_orchestration(&instance, "Hello", number.to_string()).await.unwrap();
                let patience = Duration::from_secs(600);
                client.wait_for_orchestration(&instance, patience).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let took = begun.elapsed();
    runtime.shutdown(None).await;
    took
}
