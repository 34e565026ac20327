//! An instance with an undecodable history fails, and its parents get the failure.

use outlast_engine::OrchestrationContext;
use outlast_memory::MemoryProvider;
use outlast_provider::{Clock, Provider};
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{Client, OrchestrationStatus, Runtime, RuntimeOptions};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(600);

/// A clock that follows the paused time of tokio.
struct TokioClock(Instant);

impl Clock for TokioClock {
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
async fn c7_an_undecodable_child_fails_its_parent_and_rejects_a_start_in_the_batch() {
    let store = Arc::new(MemoryProvider::with_clock(Arc::new(TokioClock(Instant::now()))));
    let client = Client::new(store.clone());
    let runtime = start(&store).await;
    client.start_orchestration("first", "Parent", "").await.unwrap();
    while client.get_orchestration_status("child").await.unwrap() == OrchestrationStatus::NotFound {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    // The restart empties the warm cache, so the child is loaded from the store.
    runtime.shutdown(None).await;
    store.corrupt_history("child");
    let runtime = start(&store).await;
    client.start_orchestration("second", "Parent", "").await.unwrap();

    let failure = failure_of(&client, "first").await;
    assert!(failure.contains("poison"), "{failure}");
    let failure = failure_of(&client, "second").await;
    assert!(failure.contains("sub-orchestration instance id 'child' already exists"), "{failure}");
    runtime.shutdown(None).await;
}
