//! A chain of steps: each gets the result of the one before. With typed values, encoded as JSON.
#![allow(clippy::print_stdout, reason = "an example talks to its terminal")]

use outlast::providers::memory::MemoryProvider;
use outlast::runtime::Runtime;
use outlast::runtime::registry::ActivityRegistry;
use outlast::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
    label: Option<String>,
}

async fn price(_: ActivityContext, item: String) -> Result<Order, String> {
    Ok(Order { cents: 100 * item.len() as u64, item, label: None })
}

async fn pack(_: ActivityContext, order: Order) -> Result<Order, String> {
    Ok(Order { label: Some(format!("{} for {} cents", order.item, order.cents)), ..order })
}

async fn fulfil(ctx: OrchestrationContext, item: String) -> Result<Order, String> {
    let priced: Order = ctx.schedule_activity_typed("Price", &item).await?;
    println!("priced: {priced:?}");
    ctx.schedule_activity_typed("Pack", &priced).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let activities =
        ActivityRegistry::builder().register_typed("Price", price).register_typed("Pack", pack).build();
    let orchestrations = OrchestrationRegistry::builder().register_typed("Fulfil", fulfil).build();
    let store = Arc::new(MemoryProvider::new());
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);

    client.start_orchestration_typed("order-1", "Fulfil", "lamp").await?;
    let order: Order = client.wait_for_orchestration_typed("order-1", Duration::from_secs(5)).await??;
    println!("packed: {order:?}");
    assert_eq!(order.label.as_deref(), Some("lamp for 400 cents"));
    runtime.shutdown(None).await;
    Ok(())
}
