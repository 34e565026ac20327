//! An orchestration that waits only for its cancellation.

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use std::time::Duration;

#[tokio::test]
async fn an_orchestration_is_parked_until_it_is_cancelled() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Parked", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_custom_status("parked");
            std::future::pending::<Result<String, String>>().await
        })
        .build();
    let (_store, rt, client) = super::started(ActivityRegistry::builder().build(), orchestrations).await;
    client.start_orchestration("parked", "Parked", "").await.unwrap();
    let status = client
        .wait_for_status_change("parked", 0, Duration::from_millis(5), Duration::from_secs(30))
        .await
        .unwrap();
    assert!(
        matches!(status, OrchestrationStatus::Running { custom_status: Some(text), .. } if text == "parked")
    );
    client.cancel_instance("parked", "go home").await.unwrap();
    assert_eq!(super::failure(&client, "parked").await.display_message(), "canceled: go home");
    rt.shutdown(None).await;
}
