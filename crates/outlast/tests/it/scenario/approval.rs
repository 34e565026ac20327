//! An approval that arrives in time, and one that does not.

use crate::support::{Cluster, Node, activities, on_every_store, orchestrations};
use outlast::{Either2, OrchestrationContext};
use std::sync::Arc;
use std::time::Duration;

on_every_store! { approval: 100 }

async fn request(ctx: OrchestrationContext, patience_ms: u64) -> Result<String, String> {
    let decision = ctx.schedule_wait("decision");
    let timeout = ctx.schedule_timer(Duration::from_millis(patience_ms));
    ctx.set_custom_status("waiting for a person");
    match ctx.select2(decision, timeout).await {
        Either2::First(decision) => Ok(format!("decided: {decision}")),
        Either2::Second(()) => Ok("escalated".to_string()),
    }
}

async fn approval(cluster: Arc<Cluster>) {
    cluster.start(&Node::new(orchestrations().register_typed("Request", request), activities())).await;
    cluster.client.start_orchestration_typed("request-1", "Request", 600_000_u64).await.unwrap();
    cluster.client.start_orchestration_typed("request-2", "Request", 300_u64).await.unwrap();
    cluster.says("request-1", "waiting for a person").await;
    cluster.client.raise_event("request-1", "decision", "yes").await.unwrap();
    assert_eq!(cluster.output("request-1").await, "decided: yes");
    assert_eq!(cluster.output("request-2").await, "escalated");
    // These events are too late for both instances and have no effect.
    cluster.client.raise_event("request-1", "decision", "no").await.unwrap();
    cluster.client.raise_event("request-2", "decision", "no").await.unwrap();
    assert_eq!(cluster.output("request-1").await, "decided: yes");
}
