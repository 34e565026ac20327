//! An orchestration that waits only for its cancellation.

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use std::time::Duration;

#[tokio::test]
async fn an_orchestration_is_pending_until_it_is_cancelled() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Pending", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_custom_status("pending");
            std::future::pending::<Result<String, String>>().await
        })
        .build();
    let (_store, rt, client) = super::started(ActivityRegistry::builder().build(), orchestrations).await;
    client.start_orchestration("pending", "Pending", "").await.unwrap();
    let status = client
        .wait_for_status_change("pending", 0, Duration::from_millis(5), Duration::from_secs(30))
        .await
        .unwrap();
    assert!(
        matches!(status, OrchestrationStatus::Running { custom_status: Some(text), .. } if text == "pending")
    );
    client.cancel_instance("pending", "go home").await.unwrap();
    assert_eq!(super::failure(&client, "pending").await.display_message(), "canceled: go home");
    rt.shutdown(None).await;
}
