//! What an activity may do with what it is given.

use outlast_memory::MemoryProvider;
use outlast_provider::Provider;
use outlast_runtime::registry::{ActivityRegistry, OrchestrationRegistry};
use outlast_runtime::{ActivityContext, Client, OrchestrationStatus, Runtime};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn an_activity_that_cancels_its_own_token_still_has_a_result() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder()
        .register("Stops its helpers", |ctx: ActivityContext, _: String| async move {
            let token = ctx.cancellation_token();
            let helper = tokio::spawn({
                let token = token.clone();
                async move { token.cancelled().await }
            });
            token.cancel();
            helper.await.map_err(|error| error.to_string())?;
            Ok(format!("attempt {}", ctx.attempt()))
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Once", |ctx: outlast_engine::OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Stops its helpers", "").await
        })
        .build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Once", "").await.unwrap();
    let status = client.wait_for_orchestration("i", Duration::from_secs(600)).await.unwrap();
    assert!(
        matches!(&status, OrchestrationStatus::Completed { output, .. } if output == "attempt 1"),
        "{status:?}"
    );
    runtime.shutdown(None).await;
}
