//! An instance whose history nobody can read is failed in the end, and everybody who waits for it is told.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{Clock, Provider};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, OrchestrationStatus, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(600);

/// Tokio's time.
struct Virtual(Instant);

impl Clock for Virtual {
    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis().try_into().unwrap()
    }
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "child", "").await
        })
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_wait("never").await)
        })
        .build()
}

async fn start(store: &Arc<MemoryProvider>) -> Arc<Runtime> {
    let options = RuntimeOptions { max_attempts: 2, ..RuntimeOptions::default() };
    let activities = ActivityRegistry::builder().build();
    let store: Arc<dyn Provider> = store.clone();
    Runtime::start_with_options(store, activities, orchestrations(), options).await
}

async fn failure_of(client: &Client, instance: &str) -> String {
    let waited = client.wait_for_orchestration(instance, LONG).await;
    match waited.unwrap_or_else(|error| panic!("{instance}: {error}")) {
        OrchestrationStatus::Failed { details, .. } => details.display_message(),
        other => panic!("{instance}: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn c7_parents_in_the_batch_that_is_dropped_are_told() {
    let store = Arc::new(MemoryProvider::with_clock(Arc::new(Virtual(Instant::now()))));
    let client = Client::new(store.clone());
    let runtime = start(&store).await;
    client.start_orchestration("first", "Parent", "").await.unwrap();
    while client.get_orchestration_status("child").await.unwrap() == OrchestrationStatus::NotFound {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    // Without its copy in memory, the child is what the store has of it.
    runtime.shutdown(None).await;
    store.corrupt_history("child");
    let runtime = start(&store).await;
    client.start_orchestration("second", "Parent", "").await.unwrap();

    let told = failure_of(&client, "first").await;
    assert!(told.contains("poison"), "{told}");
    let told = failure_of(&client, "second").await;
    assert!(told.contains("sub-orchestration instance id 'child' already exists"), "{told}");
    runtime.shutdown(None).await;
}
