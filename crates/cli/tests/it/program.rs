//! A program whose store the command reads.

use outlast::client::Client;
use outlast::providers::Provider;
use outlast::providers::sqlite::SqliteProvider;
use outlast::runtime::registry::ActivityRegistry;
use outlast::runtime::{OrchestrationStatus, Runtime};
use outlast::{OrchestrationContext, OrchestrationRegistry};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A runtime on a store, in this process.
pub(crate) struct Program {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) client: Client,
}

async fn greeting(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("greets");
    ctx.set_kv_value("colour", "blue");
    let said = ctx.schedule_activity("Say", "s3cret input").await?;
    ctx.schedule_sub_orchestration("Leaf", "").await?;
    Ok(said)
}

async fn parked(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

/// Takes a message of queue `next` in each of as many executions as the input says.
async fn rounds(ctx: OrchestrationContext, left: String) -> Result<String, String> {
    ctx.dequeue_event("next").await;
    match left.parse::<u32>() {
        Ok(left @ 2..) => ctx.continue_as_new((left - 1).to_string()).await,
        _ => Ok("over".to_string()),
    }
}

/// Starts one operation of each kind, and waits.
async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let untaken = ctx.schedule_activity("Say", "s3cret input").with_tag("gpu");
    let taken = ctx.schedule_activity("Block", "s3cret input");
    let timer = ctx.schedule_timer(Duration::from_secs(7_200));
    let approval = ctx.schedule_wait("approve");
    let order = ctx.dequeue_event("orders");
    let child = ctx.schedule_sub_orchestration("Parked", "");
    approval.await;
    order.await;
    timer.await;
    untaken.await?;
    taken.await?;
    child.await
}

impl Program {
    pub(crate) async fn start(store: &Path) -> Self {
        Self::on(Arc::new(SqliteProvider::new(&format!("sqlite:{}", store.display()), None).await.unwrap()))
            .await
    }

    pub(crate) async fn on(store: Arc<dyn Provider>) -> Self {
        let client = Client::new(store.clone());
        let block = |_, _: String| std::future::pending::<Result<String, String>>();
        let activities = ActivityRegistry::builder()
            .register("Block", block)
            .register("Say", |_, _: String| async { Ok("s3cret\u{1b}[31m result".to_string()) })
            .build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("Greeting", greeting)
            .register("Rounds", rounds)
            .register("Waits", waits)
            .register("Parked", parked)
            .register_versioned("Parked", "2.0.0", parked)
            .register("Leaf", |_, _: String| async { Ok("leaf".to_string()) })
            .register("Broken", |_, _: String| async { Err("it is broken".to_string()) })
            .build();
        let runtime = Runtime::start_with_store(store, activities, orchestrations).await;
        Self { runtime, client }
    }

    pub(crate) async fn run(&self, instance: &str, orchestration: &str) -> OrchestrationStatus {
        self.client.start_orchestration(instance, orchestration, "").await.unwrap();
        self.client.wait_for_orchestration(instance, LONG).await.unwrap()
    }
}

impl Program {
    /// Fills a store with six instances (two are children), one of them running, and stops.
    pub(crate) async fn fill_and_stop(self) {
        self.run("hello-1", "Greeting").await;
        self.run("broken-1", "Broken").await;
        self.run("hello-2", "Greeting").await;
        self.park("parked-1", "1.0.0").await;
        self.runtime.shutdown(None).await;
    }

    /// Starts an instance that waits for an event.
    pub(crate) async fn park(&self, instance: &str, version: &str) {
        self.client.start_orchestration_versioned(instance, "Parked", version, "").await.unwrap();
        while self.client.get_orchestration_status(instance).await.unwrap() == OrchestrationStatus::NotFound {
            tokio::task::yield_now().await;
        }
    }
}
