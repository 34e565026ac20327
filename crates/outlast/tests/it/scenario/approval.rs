//! A person who decides, or does not in time.

use crate::support::{Node, World, activities, on_every_store, orchestrations};
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

async fn approval(world: Arc<World>) {
    world.start(&Node::new(orchestrations().register_typed("Request", request), activities())).await;
    world.client.start_orchestration_typed("request-1", "Request", 600_000_u64).await.unwrap();
    world.client.start_orchestration_typed("request-2", "Request", 300_u64).await.unwrap();
    world.says("request-1", "waiting for a person").await;
    world.client.raise_event("request-1", "decision", "yes").await.unwrap();
    assert_eq!(world.output("request-1").await, "decided: yes");
    assert_eq!(world.output("request-2").await, "escalated");
    // Too late for both, and no harm done.
    world.client.raise_event("request-1", "decision", "no").await.unwrap();
    world.client.raise_event("request-2", "decision", "no").await.unwrap();
    assert_eq!(world.output("request-1").await, "decided: yes");
}
