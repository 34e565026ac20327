//! The typed layer and the string API in one program, and across the versions of a program.

use crate::support::{Cluster, Kind, Node, activities, orchestrations};
use outlast::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[derive(Serialize, Deserialize, outlast::Message)]
struct Approval {
    yes: bool,
}

#[outlast::activity]
async fn charge(_ctx: ActivityContext, order: Order) -> Result<String, String> {
    Ok(format!("charged {}", order.cents))
}

#[outlast::activity(errors = text)]
async fn refuse(_ctx: ActivityContext) -> Result<(), String> {
    Err("refused".to_string())
}

#[outlast::orchestration(accepts(Approval))]
async fn fulfil(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    let charged = charge::call(&ctx, order).await?;
    let approval: Approval = ctx.next().await?;
    let shipped = ctx.schedule_activity("Ship", "raw").await?;
    Ok(format!("{charged}, {}, {shipped}", approval.yes))
}

/// The same orchestration as a program without the typed layer wrote it.
async fn fulfil_in_text(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    let charged: String = ctx.schedule_activity_typed("charge", &order).await?;
    let approval: Approval = ctx.dequeue_event_typed("approval").await;
    let shipped = ctx.schedule_activity("Ship", "raw").await?;
    Ok(format!("{charged}, {}, {shipped}", approval.yes))
}

async fn parent(ctx: OrchestrationContext, order: Order) -> Result<String, String> {
    let refused = ctx.schedule_activity("refuse", "").await;
    assert_eq!(refused, Err("refused".to_string()));
    ctx.schedule_sub_orchestration_with_id_typed("fulfil", "child", &order).await
}

fn string_node(name: &str) -> Node {
    let ship = activities()
        .register("Ship", |_: ActivityContext, text: String| async move { Ok(format!("shipped {text}")) })
        .register_typed("charge", |_: ActivityContext, order: Order| async move {
            Ok(format!("charged {}", order.cents))
        });
    Node::new(orchestrations().register_typed(name, fulfil_in_text), ship)
}

fn order() -> Order {
    Order { id: "o".into(), cents: 12 }
}

const EXPECTED: &str = "charged 12, true, shipped raw";

#[tokio::test]
async fn string_clients_and_parents_run_typed_orchestrations() {
    let cluster = Cluster::real(Kind::SqliteMemory).await;
    cluster.start(&Node::of(outlast::module![charge, refuse, fulfil])).await;
    let ship = activities()
        .register("Ship", |_: ActivityContext, text: String| async move { Ok(format!("shipped {text}")) });
    cluster.start(&Node::new(orchestrations().register_typed("parent", parent), ship)).await;
    let client = &cluster.client;
    client.start_orchestration_typed("o-1", "fulfil", order()).await.unwrap();
    client.enqueue_event("o-1", "approval", r#"{"yes":true}"#).await.unwrap();
    assert_eq!(cluster.output("o-1").await, EXPECTED);
    client.start_orchestration_typed("parent", "parent", order()).await.unwrap();
    while fulfil::handle(client, "child").send(Approval { yes: true }).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(cluster.output("parent").await, EXPECTED);
    cluster.end().await;
}

/// An instance that begins in one world ends in the other.
#[tokio::test]
async fn a_running_instance_moves_between_the_string_api_and_the_typed_layer() {
    for typed_first in [false, true] {
        let cluster = Cluster::real(Kind::SqliteFile).await;
        let typed = || Node::of(outlast::module![charge, fulfil]);
        let first = if typed_first { typed() } else { string_node("fulfil") };
        let first = cluster.start(&first).await;
        let handle = fulfil::start(&cluster.client, order()).id("o").await.unwrap();
        while !cluster.history("o").await.iter().any(|event| event.contains("QueueSubscribed")) {
            tokio::task::yield_now().await;
        }
        cluster.stop(first).await;
        if typed_first {
            cluster.start(&string_node("fulfil")).await;
        } else {
            let ship = string_node("other");
            cluster.start(&typed()).await;
            cluster.start(&ship).await;
        }
        handle.send(Approval { yes: true }).await.unwrap();
        assert_eq!(handle.result().within(Duration::from_secs(30)).await.as_deref(), Ok(EXPECTED));
        cluster.end().await;
    }
}
