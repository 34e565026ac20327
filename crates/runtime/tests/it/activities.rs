//! Activities that cancel their own token, and slow activities.

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

#[tokio::test(start_paused = true)]
async fn p12_a_slow_activity_does_not_delay_other_activities() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let (begun, ends) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let activities = {
        let (begun, ends) = (Arc::clone(&begun), Arc::clone(&ends));
        ActivityRegistry::builder()
            .register("Slow", move |_, _: String| {
                let (begun, ends) = (Arc::clone(&begun), Arc::clone(&ends));
                async move {
                    begun.notify_one();
                    ends.notified().await;
                    Ok("slow".to_string())
                }
            })
            .register("Fast", |_, _: String| async { Ok("fast".to_string()) })
            .build()
    };
    let orchestrations = OrchestrationRegistry::builder()
        .register("Calls", |ctx: outlast_engine::OrchestrationContext, name: String| async move {
            ctx.schedule_activity(name, "").await
        })
        .build();
    // The default of two activity slots: the slow activity occupies one of them.
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    let output = async |instance: &str| match client
        .wait_for_orchestration(instance, Duration::from_secs(60))
        .await
        .unwrap()
    {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{other:?}"),
    };
    client.start_orchestration("slow", "Calls", "Slow").await.unwrap();
    begun.notified().await;
    for nth in 0..50 {
        let instance = format!("fast-{nth}");
        client.start_orchestration(&instance, "Calls", "Fast").await.unwrap();
        assert_eq!(output(&instance).await, "fast");
    }
    ends.notify_one();
    assert_eq!(output("slow").await, "slow");
    runtime.shutdown(None).await;
}
