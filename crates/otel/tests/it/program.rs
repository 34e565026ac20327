//! The orchestrations and activities of the tests, and nodes that run them.

use crate::collector::Collector;
use async_trait::async_trait;
use outlast::providers::Provider;
use outlast::providers::memory::MemoryProvider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::registry::{ActivityRegistry, ActivityRegistryBuilder};
use outlast::runtime::{ActivityHandler, Attempt, OrchestrationStatus, Runtime};
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions};
use outlast_otel::Traces;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A text that must not reach a collector.
pub(crate) const SECRET: &str = "sesame-4711";

pub(crate) const WAIT: Duration = Duration::from_secs(60);

/// Fails once, and asks for another attempt.
struct Flaky;

#[async_trait]
impl ActivityHandler for Flaky {
    async fn invoke(&self, _ctx: ActivityContext, input: String) -> Result<String, String> {
        Ok(input)
    }

    async fn attempt(&self, ctx: ActivityContext, input: String) -> Attempt {
        match ctx.attempt() {
            1 => Attempt::Retry { error: SECRET.to_string(), after: Duration::from_millis(1) },
            _ => Attempt::Done(Ok(input)),
        }
    }
}

pub(crate) fn activities() -> ActivityRegistryBuilder {
    ActivityRegistry::builder()
        .register("Work", |_: ActivityContext, _: String| async { Ok(SECRET.to_string()) })
        .register("Fail", |_: ActivityContext, _: String| async { Err(SECRET.to_string()) })
        .register_handler("Flaky", Arc::new(Flaky))
}

/// Fan-out, a child, a timer, a wait, a queue, a retry.
async fn order(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let works: Vec<_> = (0..3).map(|_| ctx.schedule_activity("Work", SECRET)).collect();
    ctx.join(works).await;
    ctx.schedule_sub_orchestration("Ship", SECRET).await?;
    ctx.schedule_timer(Duration::from_millis(20)).await;
    ctx.schedule_wait("approval").await;
    ctx.dequeue_event("items").await;
    ctx.schedule_activity("Flaky", SECRET).await
}

async fn ship(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_sub_orchestration("Pack", SECRET).await
}

async fn pack(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("Work", SECRET).await
}

async fn fails(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("Fail", SECRET).await
}

/// Three executions.
async fn counts(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "" => ctx.continue_as_new("1").await,
        "1" => ctx.continue_as_new("2").await,
        _ => Ok(input),
    }
}

async fn starts(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_orchestration("Pack", "detached", SECRET);
    Ok(String::new())
}

/// Two waits for events between activities and a timer.
async fn steps(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let timer = ctx.schedule_timer(Duration::from_millis(1));
    ctx.schedule_activity("Work", "").await?;
    ctx.schedule_wait("one").await;
    timer.await;
    ctx.schedule_activity("Work", "").await?;
    ctx.schedule_wait("two").await;
    ctx.schedule_activity("Work", "").await
}

pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", order)
        .register("Ship", ship)
        .register("Pack", pack)
        .register("Fails", fails)
        .register("Counts", counts)
        .register("Starts", starts)
        .register("Steps", steps)
        .build()
}

/// A store of a test.
pub(crate) struct Store {
    pub(crate) provider: Arc<dyn Provider>,
    _folder: Option<TempDir>,
}

pub(crate) async fn stores() -> [Store; 2] {
    let folder = tempfile::tempdir().unwrap();
    let file = sqlite(&folder.path().join("traces.db")).await;
    let memory: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    [Store { provider: memory, _folder: None }, Store { provider: file, _folder: Some(folder) }]
}

pub(crate) async fn sqlite(file: &Path) -> Arc<dyn Provider> {
    Arc::new(SqliteProvider::new(&format!("sqlite:{}", file.display()), None).await.unwrap())
}

/// A runtime with traces.
pub(crate) struct Node {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) client: Client,
    pub(crate) traces: Traces,
}

pub(crate) fn exporting(collector: &Collector) -> Traces {
    let traces = Traces::otlp(&collector.url).unwrap().service("tests");
    traces.delay(Duration::from_millis(5)).start()
}

impl Node {
    pub(crate) async fn start(store: &Arc<dyn Provider>, traces: Traces) -> Self {
        Self::with_options(store, traces, RuntimeOptions::default(), activities()).await
    }

    pub(crate) async fn with_options(
        store: &Arc<dyn Provider>,
        traces: Traces,
        options: RuntimeOptions,
        activities: ActivityRegistryBuilder,
    ) -> Self {
        let options = RuntimeOptions {
            observer: Some(traces.observe()),
            worker_lock_timeout: Duration::from_secs(2),
            worker_lock_renewal_buffer: Duration::from_secs(1),
            orchestrator_lock_timeout: Duration::from_secs(2),
            ..options
        };
        let builder = Runtime::builder().store(Arc::clone(store)).orchestrations(orchestrations());
        let runtime = builder.register_activities(activities).options(options).start().await.unwrap();
        Self { runtime, client: Client::new(Arc::clone(store)), traces }
    }

    pub(crate) async fn ended(&self, instance: &str) -> OrchestrationStatus {
        self.client.wait_for_orchestration(instance, WAIT).await.unwrap()
    }

    /// Shuts the runtime down, and exports its last spans.
    pub(crate) async fn end(self) {
        self.runtime.shutdown(None).await;
        self.traces.shutdown(WAIT).await.unwrap();
        assert_eq!(self.traces.dropped(), 0);
    }
}
